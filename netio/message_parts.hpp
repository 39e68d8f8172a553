// SPDX-License-Identifier: Apache-2.0
#pragma once

// A message in parts, one behind the other, that is to be copied into pages. No I/O.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace netio {

using MessageParts = std::span<const std::span<const std::byte>>;

inline std::size_t size_of(MessageParts parts) noexcept {
    std::size_t bytes = 0;
    for (const std::span<const std::byte> part : parts)
        bytes += part.size();
    return bytes;
}

// Copies `out.size()` bytes of the message from `offset` on; it has that many.
inline void copy_parts(MessageParts parts, std::size_t offset, std::span<std::byte> out) noexcept {
    for (const std::span<const std::byte> part : parts) {
        if (offset >= part.size()) {
            offset -= part.size();
            continue;
        }
        const std::size_t bytes = std::min(part.size() - offset, out.size());
        if (bytes > 0) std::memcpy(out.data(), part.data() + offset, bytes);
        out = out.subspan(bytes);
        offset = 0;
        if (out.empty()) return;
    }
}

} // namespace netio
