// SPDX-License-Identifier: Apache-2.0
#pragma once

// The frames of the stream service (docs/wire-formats.md, "Stream"): what the codecs of
// stream/core/wire.hpp are wrapped into.

#include "stream/core/wire.hpp"

#include "netio/base/frame.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::stream::inline v0_2 {

inline constexpr std::uint8_t bytes_kind = first_service_kind;
inline constexpr std::uint8_t control_kind = first_state_kind;
inline constexpr std::uint8_t ring_kind = first_state_kind + 1;
inline constexpr std::size_t frame_limit_bytes = frame_header_bytes + control_limit_bytes;
static_assert(frame_limit_bytes == 1312);

// Control messages with adverts that are under way at once; each has a slot of registered memory.
inline constexpr std::uint32_t control_slot_count = 8;
// Cookies of the session: the number of a transfer, or this bit and the slot of a control message.
inline constexpr std::uint64_t control_cookie = std::uint64_t{1} << 63;

} // namespace netio::stream::inline v0_2
