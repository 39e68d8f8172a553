// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/extent.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

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

} // namespace apps::copy
