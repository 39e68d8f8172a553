// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is being copied, read from its beginning to its end while its checksum is taken.
// Everything blocks; every failure throws std::system_error or std::runtime_error naming the file.

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
    // Fewer blocks are on the disk than its size needs, so it has holes.
    bool is_sparse() const noexcept { return data_bytes_ < size_bytes_; }
    // About so many bytes of it are data.
    std::uint64_t data_bytes() const noexcept { return data_bytes_; }
    // Now, for they may change while it is read. Set-user-id, set-group-id and sticky bits are left
    // out: they are never copied.
    Attributes attributes() const;

    // The next extents of data from a position on, at most `limit`, and no hole between them of
    // more than hole_step_bytes. One without bytes: a hole goes on there. None: no data follows.
    std::vector<Extent> extents(std::uint64_t from, std::size_t limit) const;
    // Up to the position there is a hole.
    void pass_hole(std::uint64_t position, const std::stop_token& stop);
    // The checksum of the next bytes, and of those before; reading goes on after them.
    Digest skip(std::uint64_t bytes, const std::stop_token& stop);
    void rewind();
    // Fills the memory with the next bytes, which must be there.
    void read(std::span<std::byte> memory);
    // The checksum of all that was read. Throws if the file was changed since it was opened, or if
    // its size was not its length. One that was only renamed, linked or given to somebody else
    // looks changed as well, and is read once more to find out.
    Digest finish(const std::stop_token& stop);

  private:
    struct Time {
        std::int64_t seconds = 0;
        std::int64_t nanoseconds = 0;

        friend bool operator==(const Time&, const Time&) = default;
    };
    struct Times {
        Time modified;
        Time changed; // unlike the above, no program can set it back

        friend bool operator==(const Times&, const Times&) = default;
    };

    static Time time_of(const timespec& time) noexcept;
    // Throws if the file has another size or date than when it was opened.
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
