// SPDX-License-Identifier: Apache-2.0
#include "netio/session/drain_timer.hpp"

#include "netio/session/session.hpp"

#include <algorithm>

namespace netio::inline v0_3 {

void StallAwareTimer::start_at(TimePoint due) {
    due_ = due;
    stalled_then_ = loop_.stalled();
    timer_.start_at(due);
}

void StallAwareTimer::fire() {
    // Counts from when the timer was due, which may have been in the middle of a stall.
    const Duration missed = loop_.stalled() - stalled_then_;
    if (missed > Duration{0}) return start_at(due_ + missed);
    handler_();
}

void DrainTimeout::begin() {
    limit_ = attended(loop_) + times_.in_all;
    on_progress();
}

void DrainTimeout::on_progress() {
    if (!limit_) return;
    timer_.start_at(std::min(loop_.now() + times_.timeout, *limit_ + loop_.stalled()));
}

void DrainTimeout::end() noexcept {
    timer_.cancel();
    limit_.reset();
}

std::string DrainTimeout::verdict() const {
    return is_limit_over()
               ? "not received everything within " + std::to_string(times_.in_all.count()) + " ms"
               : "received nothing more for " + std::to_string(times_.timeout.count()) + " ms";
}

GracefulClose::GracefulClose(EventLoop& loop, const SessionOptions& options)
    : timeout_{loop, {.timeout = options.close_timeout, .in_all = options.close_limit}, [this] {
                   on_overdue();
               }} {}

void GracefulClose::begin(Session& session) {
    if (has_begun()) return;
    session_ = &session;
    timeout_.begin();
}

void GracefulClose::finish() {
    const std::optional<TimePoint> limit = timeout_.limit();
    if (!limit) return;
    timeout_.end();
    session_->close(*limit);
}

void GracefulClose::forget() noexcept {
    timeout_.end();
    session_ = nullptr;
}

void GracefulClose::on_overdue() {
    const std::string why = session_->peer_address() + " has " + timeout_.verdict();
    if (timeout_.is_limit_over()) {
        session_->fail(CloseReason::unconfirmed, why);
    } else {
        session_->cut_off(CloseReason::unconfirmed, why, timeout_.times().timeout);
    }
}

} // namespace netio::inline v0_3
