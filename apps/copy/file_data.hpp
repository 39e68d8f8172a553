// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apps::copy {

// Where a sparse file has data, and where it has holes, which read as zeros and take no room on the
// disk (lseek(2), SEEK_DATA). A file system that cannot say so has data everywhere.

struct Extent {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;

    std::uint64_t end() const noexcept { return position + bytes; }
    friend bool operator==(const Extent&, const Extent&) = default;
};

// The first data at or after `from`, cut at `end`; if there is none, nothing at `end`.
Extent find_data(int fd, std::uint64_t from, std::uint64_t end) noexcept;

// Appends much to a file, at the speed of its disk. What is aligned goes past the page cache
// (O_DIRECT, open(2)): to copy it there and to write it back later costs more than the disk needs.
// The rest, and everything where the file system does not offer that, goes through the cache, from
// which it leaves soon (sync_file_range(2)). Blocks; nothing is on the disk for certain before
// fsync.

class BulkWriter {
  public:
    // Memory and position must be multiples of it to go past the cache: the largest block of the
    // disks in use.
    static constexpr std::size_t alignment_bytes = 4096;

    BulkWriter() = default; // not to be written to
    // Appends at `position`. The descriptor, open for writing, stays the caller's; it is not to be
    // read from any more.
    BulkWriter(int fd, std::uint64_t position, bool past_cache) noexcept
        : fd_{fd}, position_{position}, flushed_{position}, may_bypass_{past_cache} {}

    // Throws std::system_error; what was written until then counts.
    void write(std::span<const std::byte> bytes);

    // Goes on at a later position; what lies between is a hole.
    void skip_to(std::uint64_t position) noexcept { position_ = flushed_ = position; }

    std::uint64_t position_bytes() const noexcept { return position_; }
    // Of it, what went past the cache.
    std::uint64_t bypassed_bytes() const noexcept { return bypassed_; }

  private:
    bool set_bypass(bool on) noexcept;
    void flush();

    int fd_ = -1;
    std::uint64_t position_ = 0;
    std::uint64_t flushed_ = 0;
    std::uint64_t bypassed_ = 0;
    bool may_bypass_ = false;
    bool bypasses_ = false;
};

} // namespace apps::copy
