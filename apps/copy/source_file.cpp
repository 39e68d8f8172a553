// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/source_file.hpp"

#include "apps/common/io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace apps::copy {
namespace {

constexpr std::size_t read_step_bytes = std::size_t{1} << 20;

struct stat status_of(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) throw_errno("cannot read " + path);
    return status;
}

} // namespace

SourceFile::SourceFile(std::string path, ChecksumKind kind)
    : path_{std::move(path)}, checksum_{kind} {
    // Opening a pipe without a writer must not block.
    file_ = Descriptor{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (!file_.is_open()) throw_errno("cannot read " + path_);
    const struct stat status = status_of(file_.get(), path_);
    if (!S_ISREG(status.st_mode)) {
        throw std::runtime_error{path_ + " is not a regular file; only those can be copied"};
    }
    size_bytes_ = static_cast<std::uint64_t>(status.st_size);
    times_ = {time_of(status.st_mtim), time_of(status.st_ctim)};
    constexpr std::uint64_t block_bytes = 512; // stat(2)
    data_bytes_ = std::min(size_bytes_, static_cast<std::uint64_t>(status.st_blocks) * block_bytes);
    // Advice only: without it reading is slower.
    static_cast<void>(::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
}

SourceFile::Time SourceFile::time_of(const timespec& time) noexcept {
    return {.seconds = time.tv_sec, .nanoseconds = time.tv_nsec};
}

Attributes SourceFile::attributes() const {
    const struct stat status = status_of(file_.get(), path_);
    return {.modified_s = status.st_mtim.tv_sec,
            .modified_ns = static_cast<std::uint32_t>(status.st_mtim.tv_nsec),
            .mode = status.st_mode & 0777U};
}

std::vector<Extent> SourceFile::extents(std::uint64_t from, std::size_t limit) const {
    std::vector<Extent> found;
    while (found.size() < limit && from < size_bytes_) {
        const Extent next = find_data(file_.get(), from, size_bytes_);
        if (next.position - from > hole_step_bytes) {
            if (found.empty()) found.push_back({.position = from + hole_step_bytes});
            break;
        }
        if (next.bytes == 0) break;
        found.push_back(next);
        from = next.end();
    }
    return found;
}

void SourceFile::pass_hole(std::uint64_t position, const std::stop_token& stop) {
    checksum_.add_zeros(position - position_, stop);
    position_ = position;
}

Digest SourceFile::skip(std::uint64_t bytes, const std::stop_token& stop) {
    const std::uint64_t end = position_ + bytes;
    std::vector<std::byte> memory(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, read_step_bytes)));
    while (position_ < end) {
        const Extent data = is_sparse() ? find_data(file_.get(), position_, end)
                                        : Extent{.position = position_, .bytes = end - position_};
        pass_hole(data.position, stop);
        while (position_ < data.end()) {
            if (stop.stop_requested()) throw std::runtime_error{"interrupted"};
            const std::uint64_t rest = data.end() - position_;
            read(std::span{memory}.first(
                static_cast<std::size_t>(std::min<std::uint64_t>(rest, memory.size()))));
        }
    }
    return checksum_.digest();
}

void SourceFile::rewind() {
    position_ = 0;
    checksum_.restart();
}

void SourceFile::read(std::span<std::byte> memory) {
    for (std::size_t done = 0; done < memory.size();) {
        const ssize_t count = ::pread(file_.get(), memory.data() + done, memory.size() - done,
                                      static_cast<off_t>(position_ + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot read " + path_);
        if (count == 0) {
            static_cast<void>(times_now()); // throws if the file has become shorter
            throw std::runtime_error{path_ + " has fewer bytes than its size of " +
                                     std::to_string(size_bytes_) + "; it cannot be copied"};
        }
        done += static_cast<std::size_t>(count);
    }
    position_ += memory.size();
    checksum_.add(memory);
}

SourceFile::Times SourceFile::times_now() const {
    const struct stat status = status_of(file_.get(), path_);
    const Times now{time_of(status.st_mtim), time_of(status.st_ctim)};
    if (static_cast<std::uint64_t>(status.st_size) != size_bytes_ ||
        now.modified != times_.modified) {
        throw std::runtime_error{path_ + " was changed while it was copied; copy it again"};
    }
    return now;
}

Digest SourceFile::finish(const std::stop_token& stop) {
    if (position_ < size_bytes_) pass_hole(size_bytes_, stop);
    // Bytes after the end show that the file has grown, or that its size is meaningless, as for
    // files of /proc.
    std::byte more{};
    const ssize_t count = ::pread(file_.get(), &more, 1, static_cast<off_t>(position_));
    if (count < 0) throw_errno("cannot read " + path_);
    Times now = times_now();
    const Digest digest = checksum_.digest();
    // The contents may have changed and the date been set back, or only the name has changed.
    constexpr int most_readings = 3; // a limit, because renames may happen all the time
    for (int readings = 0; now != times_; ++readings) {
        rewind();
        if (readings == most_readings || skip(size_bytes_, stop) != digest) {
            throw std::runtime_error{path_ + " was changed while it was copied; copy it again"};
        }
        times_ = std::exchange(now, times_now());
    }
    if (count > 0) {
        throw std::runtime_error{path_ + " has more bytes than its size of " +
                                 std::to_string(size_bytes_) + "; it cannot be copied"};
    }
    return digest;
}

} // namespace apps::copy
