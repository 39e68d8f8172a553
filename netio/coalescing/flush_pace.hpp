// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides when the timer sends a page that nothing else sends. The first message after a pause need
// not wait, and frequent messages share a page, so the flush time limits the rate of such pages. If
// sending nearly empty pages takes all the time, the flush time is extended, so that pages are
// better filled. A plain value, not thread-safe.
//
//     timer.start_at(pace.next(loop.now()));   // for a page that is opened now
//     pace.on_flushed(loop.now());             // the timer has sent one
//     pace.on_flushed(loop.now(), pages);      // or has sent many

#include "netio/base/time.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace netio::inline v0_3 {

class FlushPace {
  public:
    explicit FlushPace(Duration flush_time) noexcept : flush_time_{flush_time} {}

    // `busy`: since the last flush, the loop has done only work that the flush caused.
    TimePoint next(TimePoint now, bool busy = false) noexcept {
        if (last_ == TimePoint::min()) return now;
        const Duration cost = std::exchange(cost_, Duration::zero());
        if (busy && cost > flush_time_) { // as much time as the flush took remains to fill pages
            pause_ = std::max(2 * cost, now - last_);
            last_ = now;
        }
        return std::max(now, last_ + pause_);
    }
    // What the timer did with the open pages.
    struct Pages {
        int nearly_empty = 0; // sent with less than `nearly_empty_bytes`
        int kept = 0;         // kept open: their subscribers have earlier pages to receive
    };
    static constexpr std::size_t nearly_empty_bytes = 4096;

    void on_flushed(TimePoint now) noexcept { on_flushed(now, {}); }
    void on_flushed(TimePoint now, const Pages& pages) noexcept {
        last_ = now;
        pause_ = flush_time_;
        cost_ = pages.nearly_empty * page_time;
        look_pause_ = std::max<Duration>(flush_time_, pages.kept * look_time);
    }
    // How long kept pages wait until the timer checks them again.
    Duration look_pause() const noexcept { return look_pause_; }

  private:
    // The minimum cost of sending a page. Up to five pages do not change a flush time of 40 us.
    static constexpr std::chrono::microseconds page_time{8};
    // The cost of checking a page that is kept open; checks should take a small part of the time.
    static constexpr std::chrono::microseconds look_time{2};

    Duration flush_time_;
    Duration pause_ = flush_time_;
    Duration cost_{0}; // of the last flush, until next() has used it
    Duration look_pause_ = flush_time_;
    TimePoint last_ = TimePoint::min();
};

} // namespace netio::inline v0_3
