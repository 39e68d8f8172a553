// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls the function `on_ready` of a Requester or Responder. Belongs to the loop's thread.

#include "netio/loop/event_loop.hpp"

#include <functional>
#include <utility>

namespace netio::inline v0_3 {

class ReadyNotice {
  public:
    // `on_ready` may be empty; it must outlive this object. `then` follows each call of it.
    ReadyNotice(EventLoop& loop, const std::function<void()>& on_ready, std::function<void()> then)
        : loop_{loop}, on_ready_{on_ready}, then_{std::move(then)}, timer_{loop,
                                                                           [this] { call(); }} {}

    // Calls on_ready later in this turn, or in the next one; once for several calls of this.
    void call_soon() {
        if (on_ready_ && !timer_.armed()) timer_.start_at(loop_.now());
    }
    // For a message that has arrived, without a lock: the first one of a turn is reported before
    // the loop looks for more, so that a program that answers it at once does not add the loop's
    // next poll to each round trip.
    void call_for_message() {
        if (!on_ready_) return;
        const bool is_first = std::exchange(reported_at_, loop_.now()) != loop_.now();
        is_first && !timer_.armed() ? call() : call_soon();
    }
    void cancel() { timer_.cancel(); }
    bool is_in_call() const noexcept { return is_in_call_; }

  private:
    void call() {
        is_in_call_ = true;
        on_ready_();
        is_in_call_ = false;
        then_();
    }

    EventLoop& loop_;
    const std::function<void()>& on_ready_;
    const std::function<void()> then_;
    Timer timer_;
    bool is_in_call_ = false;
    TimePoint reported_at_ = TimePoint::min(); // turn of the last message that was reported at once
};

} // namespace netio::inline v0_3
