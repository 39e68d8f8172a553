// SPDX-License-Identifier: Apache-2.0
#include "netio/access/key_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace netio::access::inline v0_3 {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) noexcept : fd_{fd} {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }

  private:
    int fd_;
};

// Used for comparison only: a date before 1678 or after 2262 wraps around.
std::int64_t nanoseconds(const timespec& time) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
                                     static_cast<std::uint64_t>(time.tv_nsec));
}

FileFacts facts_of(const struct stat& status) {
    return {.exists = true,
            .is_regular = S_ISREG(status.st_mode),
            .mode = status.st_mode & 0777U,
            .owner = status.st_uid,
            .bytes = static_cast<std::uint64_t>(status.st_size),
            .device = status.st_dev,
            .inode = status.st_ino,
            .changed_ns = nanoseconds(status.st_mtim),
            .touched_ns = nanoseconds(status.st_ctim)};
}

FileFacts facts_of(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 ? facts_of(status) : FileFacts{};
}

std::string last_error() {
    return std::system_category().message(errno);
}

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error{errno, std::system_category(), what};
}

void write_all(int fd, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(path);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    // Some file systems have no fsync.
    if (::fsync(fd) != 0 && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) fail(path);
}

// Renames a file unless the new name exists. File systems without links (FAT, some of FUSE and SMB)
// need a check before the rename, which has a race with other programs.
int give_free_name(const std::string& from, const std::string& to) {
    if (::link(from.c_str(), to.c_str()) == 0) {
        ::unlink(from.c_str());
        return 0;
    }
    if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP && errno != EINVAL) return -1;
    if (::faccessat(AT_FDCWD, to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return ::rename(from.c_str(), to.c_str());
}

} // namespace

FileFacts SystemKeySource::look(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? facts_of(status) : FileFacts{};
}

KeySource::Content SystemKeySource::read(const std::string& path) {
    Content content;
    // Non-blocking, because the path could name a pipe.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (file.get() < 0) {
        content.error = last_error();
        content.before = look(path);
        return content;
    }
    content.before = facts_of(file.get());
    if (!content.before.is_regular || content.before.bytes > key_file_limit_bytes) return content;
    std::array<char, 4096> piece{};
    for (;;) {
        const ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) content.error = last_error();
        if (got <= 0 || content.text.size() > key_file_limit_bytes) break;
        content.text.append(piece.data(), static_cast<std::size_t>(got));
    }
    wipe(std::as_writable_bytes(std::span{piece}));
    content.after = facts_of(file.get());
    return content;
}

std::uint32_t SystemKeySource::user() const {
    return ::geteuid();
}

void write_key_file(const std::string& path, const std::string& text, bool replace) {
    std::string fresh = path + ".XXXXXX";
    const Descriptor file{::mkostemp(fresh.data(), O_CLOEXEC)}; // mode 0600
    if (file.get() < 0) fail(fresh);
    try {
        struct stat earlier {};
        // Keeps the owner of the file, who reads it, even if root adds a key.
        const bool exists = replace && ::stat(path.c_str(), &earlier) == 0;
        if (exists && earlier.st_nlink > 1) {
            throw std::runtime_error{path + ": it has " + std::to_string(earlier.st_nlink) +
                                     " names (hard links), and the others would keep the former "
                                     "keys; remove them, or make them symbolic links"};
        }
        const bool foreign = exists && earlier.st_uid != ::geteuid();
        if (foreign && ::fchown(file.get(), earlier.st_uid, earlier.st_gid) != 0) fail(path);
        write_all(file.get(), text, fresh);
        const int done =
            replace ? ::rename(fresh.c_str(), path.c_str()) : give_free_name(fresh, path);
        if (done != 0) fail(path);
    } catch (...) {
        ::unlink(fresh.c_str());
        throw;
    }
}

} // namespace netio::access::inline v0_3
