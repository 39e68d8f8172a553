// SPDX-License-Identifier: Apache-2.0
#include "netio/session/patient_close.hpp"

#include "netio/session/session.hpp"

#include <algorithm>
#include <string>

namespace netio::inline v0_2 {

PatientClose::PatientClose(EventLoop& loop, const SessionOptions& options)
    : loop_{loop}, timeout_{options.close_timeout}, in_all_{options.close_limit},
      timer_{loop, [this] { on_overdue(); }} {}

void PatientClose::begin(Session& session) {
    if (has_begun()) return;
    session_ = &session;
    limit_ = attended(loop_) + in_all_;
    on_progress();
}

void PatientClose::on_progress() {
    if (!has_begun() || is_finished_) return;
    timer_.start_at(std::min(loop_.now() + timeout_, limit_ + loop_.stalled()));
}

void PatientClose::finish() {
    if (!has_begun() || is_finished_) return;
    is_finished_ = true;
    timer_.cancel();
    session_->close(limit_);
}

void PatientClose::forget() noexcept {
    timer_.cancel();
    session_ = nullptr;
    is_finished_ = false;
}

void PatientClose::on_overdue() {
    const auto told = [&](const char* what, std::chrono::milliseconds time) {
        return session_->peer_address() + what + std::to_string(time.count()) + " ms";
    };
    if (attended(loop_) >= limit_) {
        session_->fail(CloseReason::unconfirmed,
                       told(" has not taken everything within ", in_all_));
    } else {
        session_->cut_off(CloseReason::unconfirmed, told(" has taken nothing more for ", timeout_),
                          timeout_);
    }
}

} // namespace netio::inline v0_2
