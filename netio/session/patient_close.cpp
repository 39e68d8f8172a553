// SPDX-License-Identifier: Apache-2.0
#include "netio/session/patient_close.hpp"

#include "netio/session/session.hpp"

#include <string>

namespace netio::inline v0_2 {

PatientClose::PatientClose(EventLoop& loop, const SessionOptions& options)
    : wait_{loop, {.timeout = options.close_timeout, .in_all = options.close_limit}, [this] {
                on_overdue();
            }} {}

void PatientClose::begin(Session& session) {
    if (has_begun()) return;
    session_ = &session;
    wait_.begin();
}

void PatientClose::finish() {
    const std::optional<TimePoint> limit = wait_.limit();
    if (!limit) return;
    wait_.end();
    session_->close(*limit);
}

void PatientClose::forget() noexcept {
    wait_.end();
    session_ = nullptr;
}

void PatientClose::on_overdue() {
    const std::string why = session_->peer_address() + " has " + wait_.verdict();
    if (wait_.is_limit_over()) {
        session_->fail(CloseReason::unconfirmed, why);
    } else {
        session_->cut_off(CloseReason::unconfirmed, why, wait_.times().timeout);
    }
}

} // namespace netio::inline v0_2
