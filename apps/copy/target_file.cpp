// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/target_file.hpp"

#include "apps/common/io.hpp"
#include "apps/copy/served_folder.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace apps::copy {
namespace {

constexpr std::size_t step_bytes = std::size_t{1} << 20;
// Smaller files go through the page cache, where the next reader finds them.
constexpr std::uint64_t large_bytes = std::uint64_t{16} << 20;

// Returns the umask. Reading it requires setting it, so it is read once.
mode_t process_umask() {
    static const mode_t mask = [] {
        const mode_t value = ::umask(077);
        ::umask(value);
        return value;
    }();
    return mask;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The partial files that this process writes.
struct Claims {
    std::mutex mutex;
    std::set<std::pair<dev_t, ino_t>> files;
};
Claims& claims() {
    // Never destroyed, because a thread may still hold a claim at exit.
    static Claims& all = *new Claims;
    return all;
}

// Sets the attributes, and returns those that the file system did not accept. The file is kept in
// any case, because the content is more important.
std::string give_attributes(int fd, const Attributes& attributes) {
    std::string notes;
    const auto note = [&](std::string_view what, const std::string& why) {
        notes += fmt::format("{}{} ({})", notes.empty() ? "" : "; ", what, why);
    };
    if (::fchmod(fd, attributes.mode & ~process_umask()) != 0)
        note("its permissions could not be set", std::generic_category().message(errno));
    const timespec times[2] = {
        {.tv_sec = 0, .tv_nsec = UTIME_NOW},
        {.tv_sec = attributes.modified_s, .tv_nsec = static_cast<long>(attributes.modified_ns)}};
    if (::futimens(fd, times) != 0) {
        note("its date could not be set", std::generic_category().message(errno));
        return notes;
    }
    // The kernel silently clamps a date to the limits of the file system. Some file systems store
    // seconds only, and FAT even seconds only.
    constexpr std::uint64_t coarsest_s = 2;
    struct stat now {};
    const bool known = ::fstat(fd, &now) == 0;
    const std::uint64_t apart = static_cast<std::uint64_t>(now.st_mtim.tv_sec) -
                                static_cast<std::uint64_t>(attributes.modified_s);
    if (known && apart + coarsest_s > 2 * coarsest_s) // either date may be the later one
        note("its date could not be set",
             fmt::format("the file system cannot store {} s since 1970, it stored {} s",
                         attributes.modified_s, now.st_mtim.tv_sec));
    return notes;
}

} // namespace

// --- who writes a partial file --------------------------------------------------------------

std::optional<PartClaim> PartClaim::take(const struct stat& file) {
    const std::pair id{file.st_dev, file.st_ino};
    const std::lock_guard lock{claims().mutex};
    if (!claims().files.insert(id).second) return std::nullopt;
    return PartClaim{id};
}

void PartClaim::release() noexcept {
    if (!file_) return;
    const std::lock_guard lock{claims().mutex};
    claims().files.erase(*std::exchange(file_, std::nullopt));
}

// --- the file -------------------------------------------------------------------------------

TargetFile::TargetFile(Open request, Access access)
    : request_{std::move(request)},
      attributes_{attributes_of(request_)}, access_{access}, checksum_{request_.checksum} {
    if (access_ != Access::full) request_.overwrite = false;
    const PathFlaw flaw = check_path(request_.name);
    if (flaw != PathFlaw::none) {
        constexpr std::size_t shown_bytes = 64; // so that the text fits into an answer
        throw std::runtime_error{"the name " + request_.name.substr(0, shown_bytes) + " " +
                                 std::string{to_string(flaw)}};
    }
    const SplitPath path = split_path(request_.name);
    leaf_ = path.leaf;
    part_name_ = partial_name(leaf_);
    folder_name_ = path.folder;
}

TargetFile::~TargetFile() {
    release_part();
}

void TargetFile::release_part() {
    if (!part_.is_open() || finished_) return;
    struct stat status {};
    if (::fstat(part_.get(), &status) == 0 && status.st_size == 0) {
        ::unlinkat(folder_.get(), part_name_.c_str(), 0);
    }
}

void TargetFile::look_for_target() {
    struct stat status {};
    if (::fstatat(folder_.get(), leaf_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return;
        throw_errno("cannot look up " + request_.name);
    }
    if (S_ISDIR(status.st_mode)) throw std::runtime_error{request_.name + " is a folder there"};
    if (access_ == Access::write_only) {
        throw std::runtime_error{request_.name +
                                 " already exists there, and this server does not replace files"};
    }
    if (request_.overwrite) return;
    if (S_ISREG(status.st_mode) &&
        static_cast<std::uint64_t>(status.st_size) == request_.size_bytes) {
        present_ = Descriptor{
            ::openat(folder_.get(), leaf_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
        if (present_.is_open()) return;
    }
    throw std::runtime_error{request_.name + " already exists there with other contents; " +
                             (access_ == Access::full ? "--overwrite replaces it"
                                                      : "this server does not replace files")};
}

bool TargetFile::try_lock() {
    part_ = Descriptor{::openat(folder_.get(), part_name_.c_str(),
                                O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600)};
    if (!part_.is_open()) throw_errno("cannot write " + request_.name);
    struct stat ours {};
    struct stat named {};
    if (::fstat(part_.get(), &ours) != 0) throw_errno("cannot write " + request_.name);
    if (!S_ISREG(ours.st_mode) || ours.st_nlink > 1) {
        part_.reset();
        throw std::runtime_error{"cannot write " + request_.name + ": its partial file " +
                                 part_name_ + " is not a plain file; remove it"};
    }
    claim_ = PartClaim::take(ours);
    // Without locks only another process that writes to the same folder could interfere; the server
    // warns about that.
    const bool locked = claim_ && lock_file(part_.get(), LockWait::no) != LockOutcome::held;
    // The previous writer may have renamed it to its final name, or removed it.
    if (locked && ::fstatat(folder_.get(), part_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_same_file(ours, named)) {
        return true;
    }
    claim_.reset();
    part_.reset();
    return false;
}

bool TargetFile::is_large() const noexcept {
    return request_.size_bytes >= large_bytes;
}

void TargetFile::take_in(int fd, std::uint64_t bytes, const std::stop_token& stop) {
    std::vector<std::byte> memory(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, step_bytes)));
    Extent data; // not read yet
    for (std::uint64_t done = 0; done < bytes;) {
        if (stop.stop_requested()) throw std::runtime_error{"interrupted"};
        if (done >= data.end()) {
            data = find_data(fd, done, bytes);
            checksum_.add_zeros(data.position - done, stop);
            done = data.position;
            continue;
        }
        const auto step =
            static_cast<std::size_t>(std::min<std::uint64_t>(data.end() - done, memory.size()));
        const ssize_t count = ::pread(fd, memory.data(), step, static_cast<off_t>(done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot read the existing part of " + request_.name);
        if (count == 0) throw std::runtime_error{request_.name + " is being changed at the server"};
        checksum_.add(std::span{memory}.first(static_cast<std::size_t>(count)));
        done += static_cast<std::uint64_t>(count);
    }
}

std::optional<Answer> TargetFile::examine(const ServedFolder& folder, const std::stop_token& stop,
                                          const std::string& within) {
    folder_ = folder.open_folder(folder_name_, within);
    look_for_target();
    if (!present_.is_open()) {
        if (!try_lock()) {
            if (--tries_left_ > 0) return std::nullopt;
            throw std::runtime_error{request_.name + " is being received from another sender"};
        }
        look_for_target(); // the previous holder of the part may have finished it
    }
    if (present_.is_open()) {
        take_in(present_.get(), request_.size_bytes, stop);
        return Answer{.outcome = Answer::Outcome::present,
                      .offset_bytes = request_.size_bytes,
                      .digest = checksum_.digest(),
                      .text = std::string{offer_text}};
    }
    struct stat status {};
    if (::fstat(part_.get(), &status) != 0) throw_errno("cannot write " + request_.name);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const bool may_go_on = access_ != Access::write_only && size <= request_.size_bytes;
    position_ = may_go_on ? size : 0; // a longer part belongs to another file
    // A large file resumes at a whole block, so that it can bypass the cache.
    if (is_large() && position_ < request_.size_bytes) {
        position_ -= position_ % BulkWriter::alignment_bytes;
    }
    take_in(part_.get(), position_, stop);
    return Answer{.outcome = Answer::Outcome::accepted,
                  .offset_bytes = position_,
                  .digest = checksum_.digest(),
                  .text = std::string{offer_text}};
}

void TargetFile::start(std::uint64_t offset, std::optional<std::uint64_t> data_bytes) {
    if (offset != 0 && offset != position_) {
        throw std::runtime_error{request_.name + ": resuming at this position was not offered"};
    }
    if (offset == 0) checksum_.restart();
    position_ = offset;
    writer_ = BulkWriter{part_.get(), offset, is_large()};
    if (::ftruncate(part_.get(), static_cast<off_t>(offset)) != 0) {
        throw_errno("cannot write " + request_.name);
    }
    const std::uint64_t rest = data_bytes.value_or(request_.size_bytes - offset);
    // Space is not reserved (fallocate), because then a peer could fill the disk with a single
    // number.
    struct statvfs disk {};
    if (::fstatvfs(part_.get(), &disk) != 0) throw_errno("cannot write " + request_.name);
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (rest > free) {
        throw std::runtime_error{"no space for the " + std::to_string(rest) + " bytes of " +
                                 request_.name + ": " + std::to_string(free) + " are free"};
    }
}

void TargetFile::write(std::span<const std::byte> bytes) {
    try {
        writer_.write(bytes);
    } catch (const std::system_error& error) {
        throw std::system_error{error.code(), "cannot write " + request_.name};
    }
    checksum_.add(bytes);
    position_ = writer_.position_bytes();
}

void TargetFile::pass_hole(std::uint64_t position, const std::stop_token& stop) {
    if (position <= position_) return;
    if (::ftruncate(part_.get(), static_cast<off_t>(position)) == 0) {
        checksum_.add_zeros(position - position_, stop);
        writer_.skip_to(position);
        position_ = position;
        return;
    }
    // On a file system that cannot extend a file, the zeros are written.
    if (errno != EPERM && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        throw_errno("cannot write " + request_.name);
    static const std::vector<std::byte> zeros(step_bytes);
    while (position_ < position) {
        if (stop.stop_requested()) throw std::runtime_error{"interrupted"};
        write(std::span{zeros}.first(
            static_cast<std::size_t>(std::min<std::uint64_t>(position - position_, zeros.size()))));
    }
}

std::string TargetFile::finish(const Digest& expected, const std::stop_token& stop) {
    if (position_ < request_.size_bytes) pass_hole(request_.size_bytes, stop);
    if (position_ != request_.size_bytes || checksum_.digest() != expected) {
        ::unlinkat(folder_.get(), part_name_.c_str(), 0);
        finished_ = true;
        throw std::runtime_error{request_.name +
                                 ": the checksum of the received file differs from that of the "
                                 "source; it was removed, copy it again"};
    }
    std::string notes = give_attributes(part_.get(), attributes_);
    if (!sync_file(part_.get())) throw_errno("cannot write " + request_.name);
    rename();
    finished_ = true;
    if (!sync_folder(folder_.get())) throw_errno("cannot write the folder of " + request_.name);
    return notes;
}

std::string TargetFile::repair(const Attributes& attributes, bool may_change) const {
    struct stat status {};
    if (::fstat(present_.get(), &status) != 0) return "its date and permissions are unknown";
    const bool same = (status.st_mode & 0777U) == (attributes.mode & ~process_umask()) &&
                      status.st_mtim.tv_sec == attributes.modified_s &&
                      status.st_mtim.tv_nsec == attributes.modified_ns;
    if (same) return {};
    if (!may_change)
        return "its date or permissions differ, and this server does not replace files";
    return give_attributes(present_.get(), attributes);
}

void TargetFile::rename() {
    const char* from = part_name_.c_str();
    const char* to = leaf_.c_str();
    const int folder = folder_.get();
    const int result = request_.overwrite ? ::renameat(folder, from, folder, to)
                                          : rename_without_replacing(folder, from, to);
    if (result == 0) return;
    if (errno == EEXIST) {
        throw std::runtime_error{request_.name + " was created there in the meantime"};
    }
    throw_errno("cannot rename the partial file of " + request_.name);
}

} // namespace apps::copy
