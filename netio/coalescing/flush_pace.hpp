// SPDX-License-Identifier: Apache-2.0
#pragma once

// When a page that nothing else sends is to leave: sparse messages need not wait, and frequent ones
// share a page, so that the flush time is a limit of the rate. A plain value, not thread-safe.
//
//     timer.start_at(pace.next(loop.now()));   // for a page that is opened now
//     pace.on_flushed(loop.now());             // the timer has sent one

#include "netio/base/time.hpp"

#include <algorithm>

namespace netio::inline v0_2 {

class FlushPace {
  public:
    explicit FlushPace(Duration flush_time) noexcept : flush_time_{flush_time} {}

    TimePoint next(TimePoint now) const noexcept {
        return last_ == TimePoint::min() ? now : std::max(now, last_ + flush_time_);
    }
    void on_flushed(TimePoint now) noexcept { last_ = now; }

  private:
    Duration flush_time_;
    TimePoint last_ = TimePoint::min();
};

} // namespace netio::inline v0_2
