// SPDX-License-Identifier: Apache-2.0
#pragma once

// When pages that nothing else sends leave: after the flush time, and with `when_idle` as soon as
// their sessions have nothing to do.

#include "netio/coalescing/flush_pace.hpp"
#include "netio/loop/event_loop.hpp"

#include <functional>
#include <utility>

namespace netio::pubsub::inline v0_2 {

class FlushClock {
  public:
    struct Options {
        std::chrono::microseconds flush_time{}; // 0: no timer
        bool when_idle = false;
    };
    // `flush_old`: all pages are due. `flush_idle`: those of idle sessions are.
    FlushClock(EventLoop& loop, const Options& options, std::function<void()> flush_old,
               std::function<void()> flush_idle)
        : loop_{loop}, options_{options}, pace_{options.flush_time},
          old_timer_{loop, std::move(flush_old)}, idle_timer_{loop, std::move(flush_idle)} {}

    void on_page_opened() {
        if (options_.flush_time.count() > 0 && !old_timer_.armed()) {
            old_timer_.start_at(pace_.next(loop_.now()));
        }
        on_progress();
    }
    // A session may have become idle.
    void on_progress() {
        if (options_.when_idle && !idle_timer_.armed()) idle_timer_.start(Duration::zero());
    }
    // The time has sent some.
    void on_flushed_in_time() noexcept { pace_.on_flushed(loop_.now()); }
    // No page is open.
    void on_all_flushed() noexcept { old_timer_.cancel(); }

  private:
    EventLoop& loop_;
    Options options_;
    FlushPace pace_;
    Timer old_timer_;
    Timer idle_timer_;
};

} // namespace netio::pubsub::inline v0_2
