// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace netio::inline v0_2 {

// Time is monotonic: nobody's setting of the date changes a time-out.
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = std::chrono::nanoseconds;

} // namespace netio::inline v0_2
