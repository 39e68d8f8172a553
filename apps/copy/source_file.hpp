// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file to be copied, read from beginning to end while its checksum is calculated. All functions
// block; every failure throws std::system_error or std::runtime_error that names the file.

#include "apps/common/io.hpp"
#include "apps/copy/checksum.hpp"
#include "apps/copy/file_data.hpp"
#include "apps/copy/protocol.hpp"

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace apps::copy {

class SourceFile {
  public:
    // Opens it. Only a regular file can be copied.
    SourceFile(std::string path, ChecksumKind kind);

    std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    // Returns true if the file has fewer blocks on the disk than its size needs, so it has holes.
    bool is_sparse() const noexcept { return data_bytes_ < size_bytes_; }
    // The approximate number of bytes of data.
    std::uint64_t data_bytes() const noexcept { return data_bytes_; }
    // Returns the current attributes, which may change during the copy. Set-user-id, set-group-id
    // and sticky bits are never copied.
    Attributes attributes() const;

    // Returns the next extents of data from a position on, at most `limit`, with no hole of more
    // than hole_step_bytes between them. An empty extent means that a hole continues up to there.
    // No extents: no data follows.
    std::vector<Extent> extents(std::uint64_t from, std::size_t limit) const;
    // Skips a hole that ends at the position.
    void pass_hole(std::uint64_t position, const std::stop_token& stop);
    // Returns the checksum up to and including the next `bytes` bytes; reading continues after
    // them.
    Digest skip(std::uint64_t bytes, const std::stop_token& stop);
    void rewind();
    // Fills the memory with the next bytes, which must exist.
    void read(std::span<std::byte> memory);
    // Returns the checksum of the whole file. Throws if the file was changed since it was opened,
    // or if its size was not its length. A file that was only renamed, linked or given another
    // owner also looks changed, and is read once more to find out.
    Digest finish(const std::stop_token& stop);

  private:
    struct Time {
        std::int64_t seconds = 0;
        std::int64_t nanoseconds = 0;

        friend bool operator==(const Time&, const Time&) = default;
    };
    struct Times {
        Time modified;
        Time changed; // unlike the modification time, it cannot be set back

        friend bool operator==(const Times&, const Times&) = default;
    };

    static Time time_of(const timespec& time) noexcept;
    // Throws if the size or the date differs from that at the time of opening.
    Times times_now() const;

    std::string path_;
    Descriptor file_;
    std::uint64_t size_bytes_ = 0;
    Times times_; // when it was opened
    std::uint64_t data_bytes_ = 0;
    std::uint64_t position_ = 0;
    Checksum checksum_;
};

} // namespace apps::copy
