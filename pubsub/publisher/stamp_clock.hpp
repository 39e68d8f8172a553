// SPDX-License-Identifier: Apache-2.0
#pragma once

// The clock of the library's time stamps.

#include "netio/base/export.hpp"
#include "pubsub/core/time_stamp.hpp"

#include <cstdint>

namespace netio::inline v0_3::time_stamp {

// CLOCK_TAI, in nanoseconds since 1970. It is the same as UTC on a machine whose kernel does not
// know the offset.
NETIO_EXPORT std::int64_t now() noexcept;
// The time of a message for which the user gives none: now, if the clock is tai, else `unknown`.
inline std::int64_t of_call(StampClock clock) noexcept {
    return clock == StampClock::tai ? now() : unknown;
}
// The format of time stamps that this machine makes with this clock.
NETIO_EXPORT StampFormat format_here(StampClock clock) noexcept;

} // namespace netio::inline v0_3::time_stamp
