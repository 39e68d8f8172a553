// SPDX-License-Identifier: Apache-2.0
#pragma once

// A deadline for others: only the time counts in which our loop looked, so that a handler that took
// long, or a process that was stopped, is not blamed on the peer.

#include "netio/loop/event_loop.hpp"

#include <functional>
#include <utility>

namespace netio::inline v0_2 {

class PatientTimer {
  public:
    // The handler may destroy the timer.
    PatientTimer(EventLoop& loop, std::function<void()> handler)
        : loop_{loop}, handler_{std::move(handler)}, timer_{loop, [this] { fire(); }} {}

    void start_at(TimePoint due) {
        due_ = due;
        stalled_then_ = loop_.stalled();
        timer_.start_at(due);
    }
    void start(Duration delay) { start_at(loop_.now() + delay); }
    void cancel() noexcept { timer_.cancel(); }

  private:
    void fire() {
        // From when it was due, which may have been in the midst of what was missed.
        const Duration missed = loop_.stalled() - stalled_then_;
        if (missed > Duration{0}) return start_at(due_ + missed);
        handler_();
    }

    EventLoop& loop_;
    std::function<void()> handler_;
    TimePoint due_{};
    Duration stalled_then_{0};
    Timer timer_;
};

} // namespace netio::inline v0_2
