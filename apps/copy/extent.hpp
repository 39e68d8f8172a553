// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a sparse file has data, and where it has holes, which read as zeros and take no room on the
// disk (lseek(2), SEEK_DATA). A file system that cannot say so has data everywhere.

#include <cstdint>

namespace apps::copy {

struct Extent {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;

    std::uint64_t end() const noexcept { return position + bytes; }
    friend bool operator==(const Extent&, const Extent&) = default;
};

// The first data at or after `from`, cut at `end`; if there is none, nothing at `end`.
Extent find_data(int fd, std::uint64_t from, std::uint64_t end) noexcept;

} // namespace apps::copy
