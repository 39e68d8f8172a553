// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a stream that proves itself: each is known from the seed and its position, so a
// receiver checks any piece of it. No I/O.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace apps::pump {

// Fills `bytes` with those of the stream from `position` on.
void fill_stream(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t position) noexcept;

// The offset in `bytes` of the first that is wrong, if one is.
std::optional<std::size_t> find_wrong_byte(std::span<const std::byte> bytes, std::uint64_t seed,
                                           std::uint64_t position) noexcept;

} // namespace apps::pump
