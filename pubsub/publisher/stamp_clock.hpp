// SPDX-License-Identifier: Apache-2.0
#pragma once

// The clock of the library's time stamps.

#include "netio/base/export.hpp"
#include "pubsub/core/time_stamp.hpp"

#include <cstdint>

namespace netio::inline v0_3::time_stamp {

// CLOCK_TAI, in nanoseconds since 1970. Where nobody has set its offset in the kernel, it is UTC.
NETIO_EXPORT std::int64_t now() noexcept;
// What time stamps of this clock mean that are made here.
NETIO_EXPORT StampFormat format_here(StampClock clock) noexcept;

} // namespace netio::inline v0_3::time_stamp
