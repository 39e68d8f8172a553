// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the connecting side offers beyond its hello, in the body of its open frame: a list that may
// grow without a new version of the wire formats (docs/wire-formats.md, "Open"). No I/O.

#include "netio/base/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace netio::inline v0_2 {

// What this side wants to do on the connection. A publisher and a subscriber of the same process
// may share one with their peer once both sides say so.
enum class Role : std::uint8_t {
    sends = 1,
    receives = 2,
    publishes = 4,
    subscribes = 8,
};

struct OpenOptions {
    std::uint8_t roles = 0; // of enum Role; 0: what the service of the hello implies

    friend bool operator==(const OpenOptions&, const OpenOptions&) = default;
};

// Nothing, or version 1, reserved 3, then for each option: type 2, bytes 2, so many bytes of value.
inline constexpr std::size_t open_options_limit = 12;
using OpenOptionsBytes = std::array<std::byte, open_options_limit>;

// The number of bytes written.
std::size_t encode(const OpenOptions& options, OpenOptionsBytes& out) noexcept;
// Nothing: malformed, of another version, or an option is not known that must be.
std::optional<OpenOptions> decode_open_options(std::span<const std::byte> in) noexcept;

} // namespace netio::inline v0_2
