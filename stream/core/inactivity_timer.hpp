// SPDX-License-Identifier: Apache-2.0
#pragma once

// InactivityTimer: how long no byte was transferred while this process was able to check. If a
// check returns later than its end, the process was stopped in between; that extra time does not
// count.
//
//     while (!inactivity.has_expired()) {
//         poll, until inactivity.poll_deadline(now) at most
//         inactivity.on_polled(how long the poll took, whether a byte has moved);
//     }

#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>

namespace netio::stream::inline v0_3 {

class InactivityTimer {
  public:
    // 0: no limit.
    explicit InactivityTimer(std::chrono::milliseconds limit) noexcept : limit_{limit} {}

    // Short checks limit how much of a stop is counted: at most a quarter of the limit.
    TimePoint poll_deadline(TimePoint begin) const noexcept {
        return limit_ > Duration{0} ? begin + longest_poll() : TimePoint::max();
    }
    void on_polled(Duration took, bool moved) noexcept {
        inactive_ = moved ? Duration{0} : inactive_ + std::min(took, longest_poll());
    }
    bool has_expired() const noexcept { return limit_ > Duration{0} && inactive_ >= limit_; }

  private:
    Duration longest_poll() const noexcept { return limit_ / 4; }

    Duration limit_;
    Duration inactive_{0};
};

} // namespace netio::stream::inline v0_3
