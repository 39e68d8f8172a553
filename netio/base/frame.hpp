// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header at the start of every frame on an established connection (docs/wire-formats.md,
// "Frames"). No I/O.

#include "netio/base/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::inline v0_3 {

inline constexpr std::size_t frame_header_bytes = 8;

// Kinds below first_service_kind belong to the session.
enum class FrameKind : std::uint8_t {
    open = 1,
    credit = 2,
    heartbeat = 3,
    shutdown = 4,
    shutdown_ack = 5,
    written = 6,
    key_exchange = 7,
    window = 8,
};
inline constexpr std::uint8_t first_service_kind = 16;
// Frames of a service from this kind on change the service's state for the peer; frames of lower
// kinds carry data.
inline constexpr std::uint8_t first_state_kind = 20;

// The field has 16 bits; the highest bit means that the frame waited for a credit.
inline constexpr std::uint16_t waited_bit = 0x8000;
inline constexpr std::uint16_t most_credits = waited_bit - 1;

struct FrameHeader {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::uint16_t credits = 0; // up to most_credits
    std::uint32_t sequence = 0;
    bool waited = false; // the sender had to wait for a credit before this frame

    friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline void encode(const FrameHeader& header, std::span<std::byte, frame_header_bytes> out) {
    out[0] = std::byte{header.kind};
    out[1] = std::byte{header.flags};
    const std::uint16_t waited = header.waited ? waited_bit : 0;
    wire::store(out.data() + 2, static_cast<std::uint16_t>(header.credits | waited));
    wire::store(out.data() + 4, header.sequence);
}

// The caller guarantees that `in` refers to a whole header.
inline FrameHeader decode_frame_header(std::span<const std::byte, frame_header_bytes> in) {
    const auto credits = wire::load<std::uint16_t>(in.data() + 2);
    return {.kind = std::to_integer<std::uint8_t>(in[0]),
            .flags = std::to_integer<std::uint8_t>(in[1]),
            .credits = static_cast<std::uint16_t>(credits & most_credits),
            .sequence = wire::load<std::uint32_t>(in.data() + 4),
            .waited = (credits & waited_bit) != 0};
}

} // namespace netio::inline v0_3
