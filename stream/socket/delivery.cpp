// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/delivery.hpp"

#include "stream/socket/stream_socket_core.hpp"

#include "netio/base/destruction_watch.hpp"

namespace netio::stream::inline v0_2 {

using Outcome = Completion::Outcome;

Delivery::~Delivery() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

bool Delivery::tell(const Received& received) {
    const DestructionWatch watch{destroyed_};
    core_.handler().on_received(core_.socket(), received);
    return !watch.destroyed();
}

bool Delivery::received() {
    // Those posted in the handler have their turn later: after the end each completes at once.
    for (std::size_t left = in_.receive_count(); left > 0; --left) {
        const auto received = in_.next_done();
        if (!received) break;
        if (!tell(*received)) return false;
    }
    if (has_ended_ || !in_.has_ended()) return true;
    has_ended_ = true;
    const DestructionWatch watch{destroyed_};
    core_.handler().on_end_of_stream(core_.socket());
    return !watch.destroyed();
}

bool Delivery::sent() {
    const DestructionWatch watch{destroyed_};
    while (const auto cookie = out_.next_done(core_.transport().loop().now())) {
        core_.handler().on_send_completed(core_.socket(), *cookie, Outcome::done);
        if (watch.destroyed()) return false;
    }
    return true;
}

bool Delivery::writable() {
    if (!owes_writable_ || out_.is_full()) return true;
    owes_writable_ = false;
    const DestructionWatch watch{destroyed_};
    core_.handler().on_writable(core_.socket());
    return !watch.destroyed();
}

bool Delivery::canceled_sends() {
    const DestructionWatch watch{destroyed_};
    while (const auto cookie = out_.next_canceled()) {
        core_.handler().on_send_completed(core_.socket(), *cookie, Outcome::canceled);
        if (watch.destroyed()) return false;
    }
    return true;
}

bool Delivery::lost() {
    has_lost_ = true;
    const DestructionWatch watch{destroyed_};
    core_.handler().on_lost(core_.socket(), in_.unread_bytes());
    return !watch.destroyed();
}

bool Delivery::canceled_receives() {
    for (auto received = in_.next_done(); received; received = in_.next_done()) {
        if (!tell(*received)) return false;
    }
    for (auto received = in_.next_canceled(); received; received = in_.next_canceled()) {
        if (!tell(*received)) return false;
    }
    return true;
}

} // namespace netio::stream::inline v0_2
