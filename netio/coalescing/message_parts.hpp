// SPDX-License-Identifier: Apache-2.0
#pragma once

// A message in parts, one behind the other, that is to be copied into pages. No I/O.

#include "netio/base/require_cxx20.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace netio::inline v0_2 {

using MessageParts = std::span<const std::span<const std::byte>>;

inline std::size_t size_of(MessageParts parts) noexcept {
    std::size_t bytes = 0;
    for (const std::span<const std::byte> part : parts)
        bytes += part.size();
    return bytes;
}

// Copies a message, which may be empty. A small one in place, by pieces that overlap: glibc's
// memcpy has been seen to take three times as long for it.
inline void copy_message(std::byte* out, std::span<const std::byte> message) noexcept {
    using Piece = std::array<std::byte, 16>;
    const std::size_t size = message.size();
    const std::byte* const in = message.data();
    if (size < sizeof(Piece) || size > 4 * sizeof(Piece)) {
        if (size > 0) std::memcpy(out, in, size);
        return;
    }
    const auto copy = [&](std::size_t at) {
        Piece piece;
        std::memcpy(&piece, in + at, sizeof piece);
        std::memcpy(out + at, &piece, sizeof piece);
    };
    if (size > 2 * sizeof(Piece)) {
        copy(sizeof(Piece));
        copy(size - 2 * sizeof(Piece));
    }
    copy(0);
    copy(size - sizeof(Piece));
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

} // namespace netio::inline v0_2
