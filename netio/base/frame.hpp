// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header in front of everything that travels on an established connection
// (docs/wire-formats.md, "Frames"). No I/O.

#include "netio/base/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::inline v0_2 {

inline constexpr std::size_t frame_header_bytes = 8;

// Kinds below first_service_kind belong to the session itself.
enum class FrameKind : std::uint8_t {
    open = 1,
    credit = 2,
    heartbeat = 3,
    shutdown = 4,
    shutdown_ack = 5,
    written = 6,
    key_exchange = 7,
};
inline constexpr std::uint8_t first_service_kind = 16;
// From here on a service's frames change what it does for the peer; those before bring data.
inline constexpr std::uint8_t first_state_kind = 20;

struct FrameHeader {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::uint16_t credits = 0;
    std::uint32_t sequence = 0;

    friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline void encode(const FrameHeader& header, std::span<std::byte, frame_header_bytes> out) {
    out[0] = std::byte{header.kind};
    out[1] = std::byte{header.flags};
    wire::store(out.data() + 2, header.credits);
    wire::store(out.data() + 4, header.sequence);
}

// The caller has made sure that there are enough bytes.
inline FrameHeader decode_frame_header(std::span<const std::byte, frame_header_bytes> in) {
    return {.kind = std::to_integer<std::uint8_t>(in[0]),
            .flags = std::to_integer<std::uint8_t>(in[1]),
            .credits = wire::load<std::uint16_t>(in.data() + 2),
            .sequence = wire::load<std::uint32_t>(in.data() + 4)};
}

} // namespace netio::inline v0_2
