// SPDX-License-Identifier: Apache-2.0
#pragma once

// When a page that nothing else sends is to leave: sparse messages need not wait, and frequent ones
// share a page, so that the flush time is a limit of the rate. Where the time sends so many pages,
// and so empty, that sending them is all that is done, it takes longer, and they leave with more in
// them. A plain value, not thread-safe.
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

    // `busy`: nothing but the last flush and what it made to do has gone on until now.
    TimePoint next(TimePoint now, bool busy = false) noexcept {
        if (last_ == TimePoint::min()) return now;
        const Duration cost = std::exchange(cost_, Duration::zero());
        if (busy && cost > flush_time_) { // as long as that took is left to fill pages
            pause_ = std::max(2 * cost, now - last_);
            last_ = now;
        }
        return std::max(now, last_ + pause_);
    }
    // What became of the pages that were open when the time was up.
    struct Pages {
        int nearly_empty = 0; // have left with less than `nearly_empty_bytes`
        int kept = 0;         // stay, since who wants them has others to take first
    };
    static constexpr std::size_t nearly_empty_bytes = 4096;

    void on_flushed(TimePoint now) noexcept { on_flushed(now, {}); }
    void on_flushed(TimePoint now, const Pages& pages) noexcept {
        last_ = now;
        pause_ = flush_time_;
        cost_ = pages.nearly_empty * page_time;
        look_pause_ = std::max<Duration>(flush_time_, pages.kept * look_time);
    }
    // Until the time looks at those pages again that it has kept.
    Duration look_pause() const noexcept { return look_pause_; }

  private:
    // What sending a page costs at least. Up to five pages change nothing of a flush time of 40 us.
    static constexpr std::chrono::microseconds page_time{8};
    // Looking at pages that stay is to take a small part of the time.
    static constexpr std::chrono::microseconds look_time{2};

    Duration flush_time_;
    Duration pause_ = flush_time_;
    Duration cost_{0}; // of the last flush, until it has been asked what follows from it
    Duration look_pause_ = flush_time_;
    TimePoint last_ = TimePoint::min();
};

} // namespace netio::inline v0_3
