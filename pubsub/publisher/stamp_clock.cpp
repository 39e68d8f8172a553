// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/stamp_clock.hpp"

#include <sys/timex.h>

#include <ctime>

namespace netio::inline v0_3::time_stamp {

std::int64_t now() noexcept {
    timespec time{};
    static_cast<void>(clock_gettime(CLOCK_TAI, &time));
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

StampFormat format_here(StampClock clock) noexcept {
    StampFormat format{.clock = clock};
    timex state{};
    if (clock == StampClock::tai && adjtimex(&state) >= 0)
        format.utc_offset_s = static_cast<std::int16_t>(state.tai);
    return format;
}

} // namespace netio::inline v0_3::time_stamp
