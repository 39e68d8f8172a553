// SPDX-License-Identifier: Apache-2.0

// What the provider reports of an open session, and what arrives on it: checked as soon as it is
// there, handed over in order as long as the service wants it.

#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/session/cut_off.hpp"
#include "netio/session/session_core.hpp"

namespace netio::inline v0_2 {
namespace {

// Of an attempt to connect that has failed the connector tells.
void tell_end(Observer& observer, const Connection& connection, const Handshake& handshake,
              const Closed& closed) {
    const std::string peer = connection.peer_address();
    if (handshake.is_complete()) {
        observer.on_peer_disconnected({.peer = peer, .closed = closed});
    } else if (handshake.is_accepting() && closed.reason != CloseReason::local) {
        observer.on_peer_rejected({.peer = peer, .why = closed.detail});
    }
}

} // namespace

void SessionCore::on_completion(const Completion& completion) {
    const bool is_send =
        completion.kind == Completion::Kind::send || completion.kind == Completion::Kind::write;
    if (is_send) {
        const SendWindow::Released sent = send_.release(completion.cookie);
        const DestructionWatch watch{destroyed_};
        if (sent.cookie) handler_.on_sent(session_, *sent.cookie, completion.outcome);
        if (watch.destroyed()) return;
        if (state_ == State::parting && send_.is_idle()) return fail(verdict_->reason, {});
        if (!sent.own) await_peer(); // a heartbeat that leaves is no progress
        return go_on();
    }
    if (completion.outcome != Completion::Outcome::done) return;
    if (state_ >= State::parting) return;
    if (take_arrival(completion)) hand_over();
}

bool SessionCore::protocol_error(const std::string& what) {
    fail(CloseReason::protocol_error, connection_->peer_address() + " " + what);
    return false;
}

bool SessionCore::take_arrival(const Completion& completion) {
    if (!send_.is_open()) return protocol_error("sent before it had accepted");
    liveness_.on_received(loop_.now(), loop_.stalled());
    ReceiveWindow::Arrival arrival;
    std::uint32_t credits = 0;
    bool waited = false;
    const bool is_write = completion.kind == Completion::Kind::remote_write;
    if (is_write && seals_all(handshake_.gate().protection())) {
        return protocol_error("wrote into memory of a session whose frames are sealed");
    }
    if (is_write) {
        if (completion.consumed_receive) {
            arrival.receive = static_cast<std::uint32_t>(completion.cookie);
        }
        arrival.kind = static_cast<std::uint8_t>(FrameKind::written);
        arrival.notice = completion.immediate;
    } else {
        arrival.receive = static_cast<std::uint32_t>(completion.cookie);
        std::span<std::byte> bytes = receive_.content(*arrival.receive, completion.bytes);
        if (bytes.size() < frame_header_bytes)
            return protocol_error("sent a frame without a header");
        const FrameHeader header = decode_frame_header(bytes.first<frame_header_bytes>());
        // First: what nobody has sealed says nothing, not even about its order.
        if (!receive_.open(bytes)) {
            return protocol_error(
                "sent a frame of kind " + std::to_string(header.kind) +
                " whose tag is wrong; somebody has changed it on its way, or left "
                "out, repeated or moved one");
        }
        if (!receive_.is_next(header.sequence)) {
            return protocol_error("sent frame " + std::to_string(header.sequence) +
                                  " out of order");
        }
        arrival.kind = header.kind;
        arrival.flags = header.flags;
        arrival.body = bytes.subspan(frame_header_bytes);
        credits = header.credits;
        waited = header.waited;
    }
    const bool is_open_frame = arrival.kind == static_cast<std::uint8_t>(FrameKind::open);
    const bool is_exchange = arrival.kind == static_cast<std::uint8_t>(FrameKind::key_exchange);
    if ((state_ == State::exchanging) != is_exchange) {
        return protocol_error(is_exchange ? "sent its part of the session's keys out of turn"
                                          : "did not begin with its part of the session's keys");
    }
    if (state_ != State::open && !is_open_frame && !is_exchange) {
        return protocol_error("did not send an open frame first");
    }
    // Nothing vouches for this header yet.
    if (is_exchange && credits > 0) return protocol_error("returns credits before it may");
    const CreditError error = send_.on_received(credits);
    if (error == CreditError::overrun) {
        return protocol_error("granted more credits than it has receives");
    }
    if (error == CreditError::unpermitted) return protocol_error("sent without a credit");
    receive_.pace().on_arrived(waited, loop_.turns().rested(), loop_.now());
    if (credits > 0) await_peer();
    if (shutdown_.peer_is_silent()) return protocol_error("sent after it had confirmed the end");
    if (!is_write && arrival.kind < first_service_kind && !take_own_frame(arrival)) return false;
    receive_.push(arrival);
    return true;
}

// Those that need not wait for their turn are done with here.
bool SessionCore::take_own_frame(ReceiveWindow::Arrival& arrival) {
    const std::span<const std::byte> body = arrival.body;
    const auto unexpected = [&] {
        return protocol_error("sent an unexpected frame of kind " + std::to_string(arrival.kind));
    };
    if (arrival.flags != 0) return unexpected();
    switch (static_cast<FrameKind>(arrival.kind)) {
    case FrameKind::open: {
        if (state_ != State::awaiting_open)
            return protocol_error("sent its open frame out of turn");
        if (!handshake_.take_open(body)) return protocol_error("offered what is not understood");
        const DestructionWatch watch{destroyed_};
        become_open();
        return !watch.destroyed() && state_ == State::open;
    }
    case FrameKind::key_exchange:
        return take_keys(body);
    case FrameKind::credit:
    case FrameKind::heartbeat:
        return body.empty() || unexpected();
    case FrameKind::shutdown:
        return body.empty() || decode_cut_off(body) || unexpected();
    case FrameKind::shutdown_ack:
        if (body.size() != sizeof(std::uint32_t) ||
            !shutdown_.on_ack(wire::load<std::uint32_t>(body.data()))) {
            return unexpected();
        }
        await_peer();
        return true;
    case FrameKind::written:
        if (!options_.remote_writes || body.size() != sizeof(std::uint32_t)) return unexpected();
        arrival.notice = wire::load<std::uint32_t>(body.data());
        return true;
    case FrameKind::window: {
        if (body.size() != sizeof(std::uint32_t)) return unexpected();
        const auto count = wire::load<std::uint32_t>(body.data());
        if (count > most_session_receive_count || send_.on_window(count) != CreditError::none) {
            return protocol_error("says that it has " + std::to_string(count) +
                                  " receives, which cannot be");
        }
        return true;
    }
    }
    return unexpected();
}

// --- handing over ---------------------------------------------------------------------------

void SessionCore::hand_over() {
    const DestructionWatch watch{destroyed_};
    for (bool first = true; state_ != State::closing && receive_.has_work(); first = false) {
        // As many as there are receives may have waited for a user who had paused.
        if (!first && loop_.time_is_up()) {
            later_.start({});
            break;
        }
        const ReceiveWindow::Arrival arrival = receive_.front();
        deliver(arrival);
        if (watch.destroyed()) return;
        if (receive_.is_empty()) break; // the service has ended the session
        if (receive_.take_kept()) continue;
        receive_.pop();
        if (state_ >= State::parting) continue;
        if (arrival.receive && !receive_.is_kept(*arrival.receive)) {
            receive_.retire();
            send_.flow().on_retired();
            continue;
        }
        if (arrival.receive && !receive_.post(*connection_, *arrival.receive)) {
            return; // on_closed follows
        }
        // A write without one counted against the queue of completions only.
        send_.flow().on_reposted();
    }
    if (state_ != State::ended || !receive_.is_empty()) return go_on();
    Closed last = shutdown_.judge(*verdict_, send_.ledger().sent(), send_.ledger().outstanding());
    if (last.reason == CloseReason::rejected) handshake_.explain(last);
    later_.cancel();
    if (loop_.observer != nullptr) tell_end(*loop_.observer, *connection_, handshake_, last);
    handler_.on_closed(session_, last); // may destroy the session
}

void SessionCore::deliver(const ReceiveWindow::Arrival& arrival) {
    if (arrival.kind >= first_service_kind ||
        arrival.kind == static_cast<std::uint8_t>(FrameKind::written)) {
        if (!shutdown_.peer_may_send()) {
            protocol_error("sent after its shutdown");
        } else if (arrival.kind >= first_service_kind) {
            handler_.on_frame(session_, {.kind = arrival.kind,
                                         .flags = arrival.flags,
                                         .body = arrival.body,
                                         .continued = arrival.continued});
        } else {
            handler_.on_written(session_, arrival.notice);
        }
        return;
    }
    if (arrival.kind != static_cast<std::uint8_t>(FrameKind::shutdown)) return;
    if (!arrival.body.empty()) { // the peer ends at once, and says why
        const Closed why = closed_by(*decode_cut_off(arrival.body), connection_->peer_address());
        if (state_ == State::ended) verdict_ = why;
        return fail(why.reason, why.detail);
    }
    if (!shutdown_.on_shutdown()) {
        protocol_error("shut down twice");
        return;
    }
    await_peer();
    const DestructionWatch watch{destroyed_};
    const bool done = handler_.on_shutdown(session_);
    if (!watch.destroyed() && done && shutdown_.awaits_user()) shutdown_.confirm();
}

} // namespace netio::inline v0_2
