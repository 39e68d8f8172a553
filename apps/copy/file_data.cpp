// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/file_data.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

namespace apps::copy {

Extent find_data(int fd, std::uint64_t from, std::uint64_t end) noexcept {
    if (from >= end) return {.position = end};
    const off_t data = ::lseek(fd, static_cast<off_t>(from), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {.position = end}; // a hole up to the end of the file
    if (data < 0) return {.position = from, .bytes = end - from};
    const std::uint64_t position = std::clamp(static_cast<std::uint64_t>(data), from, end);
    const off_t hole = ::lseek(fd, static_cast<off_t>(position), SEEK_HOLE);
    const std::uint64_t stop = hole < 0 ? end : static_cast<std::uint64_t>(hole);
    return {.position = position, .bytes = std::clamp(stop, position, end) - position};
}

namespace {

// Bytes written through the cache before the disk is asked to begin writing them.
constexpr std::uint64_t flush_bytes = std::uint64_t{8} << 20;

bool is_aligned(std::uint64_t value) {
    return value % BulkWriter::alignment_bytes == 0;
}

} // namespace

void BulkWriter::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t whole = bytes.size() - bytes.size() % alignment_bytes;
        const bool past_cache = set_bypass(may_bypass_ && whole > 0 && is_aligned(position_) &&
                                           is_aligned(std::bit_cast<std::uintptr_t>(bytes.data())));
        const ssize_t count = ::pwrite(fd_, bytes.data(), past_cache ? whole : bytes.size(),
                                       static_cast<off_t>(position_));
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno == EINVAL && past_cache) { // not supported here, or larger blocks are needed
                may_bypass_ = false;
                continue;
            }
            throw std::system_error{errno, std::generic_category()};
        }
        const auto written = static_cast<std::size_t>(count);
        position_ += written;
        if (past_cache) bypassed_ += written;
        bytes = bytes.subspan(written);
    }
    if (bypasses_) {
        flushed_ = position_;
    } else if (position_ - flushed_ >= flush_bytes) {
        flush();
    }
}

void BulkWriter::flush() {
    // Starts writing early, so that the final fsync is short. Failure only makes it longer.
    static_cast<void>(::sync_file_range(fd_, static_cast<off_t>(flushed_),
                                        static_cast<off_t>(position_ - flushed_),
                                        SYNC_FILE_RANGE_WRITE));
    flushed_ = position_;
}

// Returns the actual state: some file systems refuse the flag.
bool BulkWriter::set_bypass(bool on) noexcept {
    if (on == bypasses_) return on;
    const int flags = ::fcntl(fd_, F_GETFL);
    const int wanted = on ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (flags < 0 || ::fcntl(fd_, F_SETFL, wanted) != 0) {
        may_bypass_ = false;
        return bypasses_;
    }
    bypasses_ = on;
    return on;
}

} // namespace apps::copy
