// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/require_cxx20.hpp"

#include <chrono>
#include <cstdint>
#include <ratio>

namespace netio::inline v0_3 {

// Time is monotonic: setting the system's date does not change a time-out.
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = std::chrono::nanoseconds;

// In nanoseconds, limited to the largest number of them: milliseconds::max() would wrap round, and
// would be over at once.
template <typename Period>
requires std::ratio_greater_equal_v<Period, std::nano>
constexpr Duration clamped(std::chrono::duration<std::int64_t, Period> time) noexcept {
    using Time = std::chrono::duration<std::int64_t, Period>;
    if (time > std::chrono::duration_cast<Time>(Duration::max())) return Duration::max();
    if (time < std::chrono::duration_cast<Time>(Duration::min())) return Duration::min();
    return std::chrono::duration_cast<Duration>(time);
}

// In milliseconds, rounded up and limited: hours::max() would wrap round to a negative number.
template <typename Period>
constexpr std::chrono::milliseconds
clamped_milliseconds(std::chrono::duration<std::int64_t, Period> time) noexcept {
    using Time = std::chrono::duration<std::int64_t, Period>;
    using Milliseconds = std::chrono::milliseconds;
    if constexpr (std::ratio_greater_v<Period, std::milli>) {
        if (time > std::chrono::duration_cast<Time>(Milliseconds::max())) {
            return Milliseconds::max();
        }
        if (time < std::chrono::duration_cast<Time>(Milliseconds::min())) {
            return Milliseconds::min();
        }
    }
    return std::chrono::ceil<Milliseconds>(time);
}

} // namespace netio::inline v0_3
