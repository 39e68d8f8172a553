// SPDX-License-Identifier: Apache-2.0
#pragma once

// When pages that nothing else sends leave: after the flush time, and with `when_idle` as soon as
// their sessions have nothing to do.

#include "netio/coalescing/flush_pace.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstdint>
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
            old_timer_.start_at(pace_.next(loop_.now(), is_busy()));
        }
        on_progress();
    }
    // A session may have become idle.
    void on_progress() {
        if (options_.when_idle && !idle_timer_.armed()) idle_timer_.start(Duration::zero());
    }
    // The time has sent some, and perhaps kept others for the next time.
    void on_flushed_in_time(const FlushPace::Pages& pages) {
        pace_.on_flushed(loop_.now(), pages);
        sleeps_ = loop_.wait_count();
        turns_ = loop_.turns().count();
        if (pages.kept > 0) old_timer_.start(pace_.look_pause());
    }
    // No page is open.
    void on_all_flushed() noexcept { old_timer_.cancel(); }

  private:
    // The turn behind the one in which the time has sent pages, without a rest between them.
    bool is_busy() const noexcept {
        return loop_.wait_count() == sleeps_ && loop_.turns().count() <= turns_ + 1;
    }

    EventLoop& loop_;
    Options options_;
    FlushPace pace_;
    std::uint64_t sleeps_ = 0; // of the loop, when the time had sent some
    std::uint64_t turns_ = 0;
    Timer old_timer_;
    Timer idle_timer_;
};

} // namespace netio::pubsub::inline v0_2
