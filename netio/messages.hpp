// SPDX-License-Identifier: Apache-2.0
#pragma once

// The frames of the message service (docs/wire-formats.md, "Messages").

#include "netio/frame.hpp"

namespace netio::messages {

inline constexpr std::uint8_t message_kind = first_service_kind;
inline constexpr std::uint8_t immediate_flag = 1;
inline constexpr std::size_t immediate_bytes = 8;

} // namespace netio::messages
