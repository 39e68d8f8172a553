// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/delivery.hpp"

#include "stream/socket/stream_socket_core.hpp"

#include "netio/base/destruction_watch.hpp"

namespace netio::stream::inline v0_2 {

using Outcome = Completion::Outcome;

Delivery::~Delivery() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

template <typename Call>
bool Delivery::call_user(Call call) {
    ++told_count_;
    const DestructionWatch watch{destroyed_};
    call(core_.handler(), core_.socket());
    return !watch.destroyed();
}

bool Delivery::tell(const Received& received) {
    return call_user([&](auto& handler, auto& socket) { handler.on_received(socket, received); });
}

bool Delivery::tell(Cookie sent, Outcome outcome) {
    return call_user(
        [&](auto& handler, auto& socket) { handler.on_send_completed(socket, sent, outcome); });
}

bool Delivery::is_held_up() const {
    return told_count_ > 0 && core_.loop().time_is_up();
}

bool Delivery::received() {
    // Those posted in the handler have their turn later: after the end each completes at once.
    for (std::size_t left = in_.receive_count(); left > 0; --left) {
        if (is_held_up()) return true;
        const auto received = in_.next_done();
        if (!received) break;
        if (!tell(*received)) return false;
    }
    if (has_ended_ || !in_.has_ended() || is_held_up()) return true;
    has_ended_ = true;
    return call_user([](auto& handler, auto& socket) { handler.on_end_of_stream(socket); });
}

bool Delivery::sent() {
    // Those posted in the handler, too: one of nothing has left at once.
    for (std::size_t left = out_.send_count(); left > 0 && !is_held_up(); --left) {
        const auto cookie = out_.next_done(core_.loop().now());
        if (!cookie) break;
        if (!tell(*cookie, Outcome::done)) return false;
    }
    return true;
}

bool Delivery::writable() {
    if (!owes_writable_ || out_.is_full() || is_held_up()) return true;
    owes_writable_ = false;
    return call_user([](auto& handler, auto& socket) { handler.on_writable(socket); });
}

bool Delivery::canceled_sends() {
    while (!is_held_up()) {
        const auto cookie = out_.next_canceled();
        if (!cookie) break;
        if (!tell(*cookie, Outcome::canceled)) return false;
    }
    return true;
}

bool Delivery::lost() {
    has_lost_ = true;
    return call_user(
        [&](auto& handler, auto& socket) { handler.on_lost(socket, in_.unread_bytes()); });
}

bool Delivery::canceled_receives() {
    while (!is_held_up()) {
        auto received = in_.next_done();
        if (!received) received = in_.next_canceled();
        if (!received) break;
        if (!tell(*received)) return false;
    }
    return true;
}

} // namespace netio::stream::inline v0_2
