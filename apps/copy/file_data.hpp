// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apps::copy {

// Finds data and holes of a sparse file; holes read as zeros and need no space on the disk
// (lseek(2), SEEK_DATA). On a file system without this information the whole file is data.

struct Extent {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;

    std::uint64_t end() const noexcept { return position + bytes; }
    friend bool operator==(const Extent&, const Extent&) = default;
};

// Returns the first data at or after `from`, cut at `end`; an empty extent at `end` if there is
// none.
Extent find_data(int fd, std::uint64_t from, std::uint64_t end) noexcept;

// Appends large amounts of data to a file at the speed of its disk. Aligned data bypasses the page
// cache (O_DIRECT, open(2)), because copying it there and writing it back later costs more than the
// disk needs. The rest, and everything on file systems without O_DIRECT, goes through the cache,
// and is written to the disk soon (sync_file_range(2)). Blocks. Data is guaranteed to be on the
// disk only after fsync.

class BulkWriter {
  public:
    // Memory and position must be multiples of this to bypass the cache: the largest block size of
    // common disks.
    static constexpr std::size_t alignment_bytes = 4096;

    BulkWriter() = default; // must not be written to
    // Appends at `position`. The caller keeps the descriptor, which is open for writing, and must
    // not read from it any more.
    BulkWriter(int fd, std::uint64_t position, bool past_cache) noexcept
        : fd_{fd}, position_{position}, flushed_{position}, may_bypass_{past_cache} {}

    // Throws std::system_error; bytes written before the failure count.
    void write(std::span<const std::byte> bytes);

    // Continues at a later position; the bytes in between are a hole.
    void skip_to(std::uint64_t position) noexcept { position_ = flushed_ = position; }

    std::uint64_t position_bytes() const noexcept { return position_; }
    // Bytes written without the cache.
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
