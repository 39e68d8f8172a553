// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies of message bytes that are fast for every size and address. No I/O.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace netio::detail {

// Up to this size glibc's memcpy uses vector registers on every processor; above it, `rep movsb` on
// processors with fast strings.
inline constexpr std::size_t vector_copy_limit_bytes = 2048;

// Whether `rep movsb` is slow for these addresses: to a destination that is 1 to 15 bytes ahead of
// the source, modulo the 4,096 bytes by which the processor compares addresses, it was measured to
// copy 3.5 GB/s instead of 48 (AMD Zen 4), and up to 63 bytes ahead 30 to 40.
inline bool is_slow_for_strings(const std::byte* out, const std::byte* in) noexcept {
    const std::uintptr_t ahead =
        (reinterpret_cast<std::uintptr_t>(out) - reinterpret_cast<std::uintptr_t>(in)) % 4096;
    return ahead - 1 < 63;
}

// Not a constant: the compiler would replace memcpy by an inline `rep movsq`, which is slow, too.
inline volatile const std::size_t copy_piece_bytes = 512;

[[gnu::noinline]] inline void copy_in_pieces(std::byte* out,
                                             std::span<const std::byte> bytes) noexcept {
    const std::size_t piece = copy_piece_bytes;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        std::memcpy(out + at, bytes.data() + at, std::min(piece, bytes.size() - at));
}

} // namespace netio::detail

namespace netio::inline v0_3 {

// Copies `bytes`, which may be empty, to `out`; they must not overlap. A small message is copied
// inline in pieces that overlap: glibc's memcpy was measured to take three times as long for it.
// Use it instead of std::memcpy for the bytes of messages, and instead of std::ranges::copy,
// because that of GCC 12 copies constant bytes one at a time.
inline void copy_bytes(std::byte* out, std::span<const std::byte> bytes) noexcept {
    using Piece = std::array<std::byte, 16>;
    const std::size_t size = bytes.size();
    const std::byte* const in = bytes.data();
    if (size < sizeof(Piece) || size > 4 * sizeof(Piece)) {
        if (size > detail::vector_copy_limit_bytes && detail::is_slow_for_strings(out, in))
            return detail::copy_in_pieces(out, bytes);
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

} // namespace netio::inline v0_3
