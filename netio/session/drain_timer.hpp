// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time-outs for peers that must receive remaining data. Only time in which this side's loop was
// running counts, so that a slow handler or a stopped process here does not count against the peer.

#include "netio/loop/event_loop.hpp"
#include "netio/session/session_options.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace netio::inline v0_3 {

class Session;

// A timer that is extended by the time in which the loop was stalled.
class StallAwareTimer {
  public:
    // The handler may destroy the timer.
    StallAwareTimer(EventLoop& loop, std::function<void()> handler)
        : loop_{loop}, handler_{std::move(handler)}, timer_{loop, [this] { fire(); }} {}

    void start_at(TimePoint due);
    void start(Duration delay) { start_at(loop_.now() + delay); }
    void cancel() noexcept { timer_.cancel(); }

  private:
    void fire();

    EventLoop& loop_;
    std::function<void()> handler_;
    TimePoint due_{};
    Duration stalled_then_{0};
    Timer timer_;
};

// Two time-outs for peers that must receive remaining data: since their last progress, and in
// total.
class DrainTimeout {
  public:
    struct Times {
        std::chrono::milliseconds timeout; // since the last progress
        std::chrono::milliseconds in_all;
    };
    // `overdue` is called when one of the times has passed. It may destroy this.
    DrainTimeout(EventLoop& loop, const Times& times, std::function<void()> overdue)
        : loop_{loop}, times_{times}, timer_{loop, std::move(overdue)} {}

    void begin();
    // The peers have made progress. Ignored unless begin() was called.
    void on_progress();
    void end() noexcept;

    // Until when in total, on the clock of attended(); `nullopt` unless begin() was called.
    const std::optional<TimePoint>& limit() const noexcept { return limit_; }
    bool is_limit_over() const noexcept { return attended(loop_) >= *limit_; }
    const Times& times() const noexcept { return times_; }
    // Text for a log: what the peers failed to do.
    std::string verdict() const;

  private:
    EventLoop& loop_;
    const Times times_;
    std::optional<TimePoint> limit_;
    StallAwareTimer timer_;
};

// The close() of a socket that still has data for its session, and so cannot close the session yet.
// Until then the session's time-outs count here: SessionOptions::close_timeout since the last
// progress, and close_limit in total. The session gets the remaining time.
class GracefulClose {
  public:
    GracefulClose(EventLoop& loop, const SessionOptions& options);

    // Begins to watch a session on which close() was called: it ends as unconfirmed if a time-out
    // expires before finish(). May be called again.
    void begin(Session& session);
    bool has_begun() const noexcept { return session_ != nullptr; }
    // Something was sent, or the peer has received something.
    void on_progress() { timeout_.on_progress(); }
    // Closes the session, because everything was sent. May be called again.
    void finish();
    // Call it when the session was destroyed.
    void forget() noexcept;

  private:
    void on_overdue();

    Session* session_ = nullptr; // set by begin()
    DrainTimeout timeout_;       // until finish()
};

} // namespace netio::inline v0_3
