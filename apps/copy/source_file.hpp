// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is being copied, read from its beginning to its end while its checksum is taken.
// Everything blocks; every failure throws std::system_error or std::runtime_error naming the file.

#include "apps/common/descriptor.hpp"
#include "apps/copy/checksum.hpp"

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

namespace apps::copy {

class SourceFile {
  public:
    // Opens it. Only a regular file can be copied.
    SourceFile(std::string path, ChecksumKind kind);

    std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    std::int64_t modified_ns() const noexcept { return times_.modified_ns; }
    std::uint32_t mode() const noexcept { return mode_; }

    // The checksum of the first bytes; reading goes on behind them.
    Digest skip(std::uint64_t bytes, const std::stop_token& stop);
    void rewind();
    // Fills the memory with the next bytes, which must be there.
    void read(std::span<std::byte> memory);
    // The checksum of all that was read. Throws if the file was changed since it was opened, or if
    // its size was not its length. One that was only renamed, linked or given to somebody else
    // looks changed as well, and is read once more to find out.
    Digest finish(const std::stop_token& stop);

  private:
    struct Times {
        std::int64_t modified_ns = 0;
        std::int64_t changed_ns = 0; // unlike the above, nobody can set it back

        friend bool operator==(const Times&, const Times&) = default;
    };

    // Throws if the file has another size or date than when it was opened.
    Times times_now() const;

    std::string path_;
    Descriptor file_;
    std::uint64_t size_bytes_ = 0;
    Times times_; // when it was opened
    std::uint32_t mode_ = 0;
    std::uint64_t position_ = 0;
    Checksum checksum_;
};

} // namespace apps::copy
