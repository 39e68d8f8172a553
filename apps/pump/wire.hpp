// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a pump tells its server before the bytes begin: a header of fixed size, little-endian. The
// server answers behind its own bytes with its report, a JSON object, until the end of the stream.
//
//      0           8       16      24       32       40       44      48
//     +-----------+-------+-------+--------+--------+--------+-------+
//     | "NPUMP" 1 | bytes | seed  | size   | size   | flags  | 0     |
//     |           | to go |       | min    | max    |        |       |
//     +-----------+-------+-------+--------+--------+--------+-------+
//     flags: bit 0 every byte is to be checked, bit 1 the server sends as many bytes back
//
// No I/O.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace apps::pump {

inline constexpr std::size_t header_bytes = 48;

struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t seed = 0;
    std::uint64_t size_min = 1;
    std::uint64_t size_max = 1;
    bool verify = false;
    bool bidirectional = false;

    friend bool operator==(const Header&, const Header&) = default;
};

// Largest message that a server lets a client ask for.
inline constexpr std::uint64_t size_limit_bytes = std::uint64_t{1} << 30U;

std::array<std::byte, header_bytes> encode(const Header& header) noexcept;
// Nothing: not such a header, or one that asks for the impossible.
std::optional<Header> decode_header(std::span<const std::byte> bytes) noexcept;

} // namespace apps::pump
