// SPDX-License-Identifier: Apache-2.0
#pragma once

// The frames of the stream service (docs/wire-formats.md, "Stream"): what the codecs of
// stream/wire.hpp are wrapped into.

#include "stream/wire.hpp"

#include "netio/frame.hpp"

#include <cstddef>
#include <cstdint>

namespace stream {

inline constexpr std::uint8_t control_kind = netio::first_service_kind;
inline constexpr std::uint8_t ring_kind = netio::first_service_kind + 1;
inline constexpr std::size_t frame_limit_bytes = netio::frame_header_bytes + control_limit_bytes;
static_assert(frame_limit_bytes == 1312);

// Control messages with adverts that are under way at once; each has a slot of registered memory.
inline constexpr std::uint32_t control_slot_count = 8;
// Cookies of the link: the number of a transfer, or this bit and the slot of a control message.
inline constexpr std::uint64_t control_cookie = std::uint64_t{1} << 63;

} // namespace stream
