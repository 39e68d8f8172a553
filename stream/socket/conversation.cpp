// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/conversation.hpp"

#include "stream/core/agreement.hpp"
#include "stream/socket/frames.hpp"
#include "stream/socket/opening.hpp"
#include "stream/socket/stream_socket_core.hpp"

#include "netio/access/auth.hpp"
#include "netio/access/rights.hpp"

#include <chrono>
#include <string>

namespace netio::stream::inline v0_2 {

using Outcome = Completion::Outcome;

namespace {

// The peer's key says that it is trusted with the process.
bool has_right(const IncomingSession& incoming) {
    const access::Rights* const rights = incoming.rights();
    return rights != nullptr && rights->rma;
}

// `may_write`: the peer into memory of ours, if the options leave it open.
Lending lending(RemoteWrites choice, access::Protection protection, bool may_write) {
    if (protection >= access::Protection::integrity) return Lending::none_where_sealed();
    return Lending::to_peer(choice, may_write);
}

// Where there are keys, the peer's says whether it is trusted, and not that others once were.
RemoteWrites choice_for(const IncomingSession& incoming, RemoteWrites choice) {
    const bool is_asked_of_all = choice == RemoteWrites::trusted && incoming.rights() != nullptr;
    return is_asked_of_all ? RemoteWrites::guarded : choice;
}

access::Protection protection_of(const Session::Target& target) {
    return target.auth ? target.auth->protection() : access::Protection::none;
}

// The session's handshake is over then, and the stream's is not.
std::string no_ring_of(const Session& session, std::chrono::milliseconds waited) {
    return session.peer_address() + " has not told of its ring within " +
           std::to_string(waited.count()) + " ms";
}

} // namespace

// --- opening --------------------------------------------------------------------------------

Conversation::Conversation(StreamSocket::Core& core, bool accepts, Lending lending)
    : core_{core}, distance_{core.loop(), accepts, core.options().round_trip},
      in_{core.options().receive_limit_count, lending}, out_{core.options().send_limit_count},
      delivery_{core, in_, out_}, wake_{core.loop(), [this] { progress(); }}, word_{core.loop(),
                                                                                    [this] {
                                                                                        wake();
                                                                                    }},
      ring_due_{core.loop(),
                [this] {
                    session_->fail(
                        CloseReason::handshake_timeout,
                        no_ring_of(*session_, core_.options().session.handshake_timeout));
                }},
      leave_{core.loop(), core.options().session} {}

Conversation::Conversation(StreamSocket::Core& core, Session::Target target)
    : Conversation{core, false,
                   lending(core.options().remote_writes, protection_of(target),
                           core.transport().guards_memory(target.provider))} {
    target.required_receive_bytes = frame_limit_bytes;
    session_ = std::make_unique<Session>(
        core.transport(), target, hello_with(core.options(), in_.lends()),
        session_with(core.options(), in_.lends()), static_cast<Session::Handler&>(*this));
}

Conversation::Conversation(StreamSocket::Core& core, IncomingSession& incoming)
    : Conversation{core, true,
                   lending(choice_for(incoming, core.options().remote_writes),
                           incoming.protection(),
                           incoming.guards_memory() || has_right(incoming))} {
    session_ = incoming.accept(hello_with(core.options(), in_.lends()),
                               session_with(core.options(), in_.lends()), *this);
}

// Memory is spent on a peer only now that it has finished the handshake.
void Conversation::on_open(Session& session) {
    distance_.on_session_open();
    const StreamSocket::Options& options = core_.options();
    if (decode_hello(session.peer().service_data.span(), peer_) != DecodeError::none) {
        return fail("speaks another version of the stream protocol");
    }
    if (peer_.lends_memory && !in_.may_be_lent()) {
        return fail("lends memory, which nobody writes to where frames are sealed");
    }
    if (const auto why = misfit(options.sender, options.receiver, peer_); !why.empty()) {
        return fail(std::string{why});
    }
    RemoteRing ring;
    try {
        ring = in_.open(agreed(options.receiver, peer_, in_.lends()), session.domain());
        controls_.open();
    } catch (const std::exception& error) { // no memory, or no more of it may be locked
        return session.fail(CloseReason::failed, error.what());
    }
    distance_.on_ring_sent();
    const Status told = ControlChannel::announce(ring, session);
    if (told == Status::again) return fail("grants no credits");
    ring_due_.start(options.session.handshake_timeout);
}

// --- what the session reports ---------------------------------------------------------------

void Conversation::on_frame(Session&, const IncomingFrame& frame) {
    if (frame.kind == bytes_kind && state_ == State::open && !in_.lends()) {
        FrameNotice notice;
        if (decode_frame_flags(frame.flags, notice) != DecodeError::none) {
            return fail("sent bytes with flags that cannot be");
        }
        if (is_good(in_.on_frame(notice, frame.body))) wake();
        return;
    }
    const bool is_ring = frame.kind == ring_kind;
    if (frame.flags != 0 ||
        !(is_ring || (frame.kind == control_kind && state_ != State::opening))) {
        return fail("sent a frame of kind " + std::to_string(frame.kind) + " out of turn");
    }
    is_ring ? take_ring(frame.body) : take_control(frame.body);
}

void Conversation::take_ring(std::span<const std::byte> body) {
    RemoteRing ring;
    const DecodeError error = decode_ring(body, ring);
    if (error != DecodeError::none) {
        return fail("sent a malformed ring: " + std::string{to_string(error)});
    }
    if (state_ != State::opening) {
        if (is_good(out_.on_ring(ring))) wake();
        return;
    }
    ring_due_.cancel();
    distance_.on_ring_arrived();
    const std::size_t longest =
        peer_.lends_memory ? session_->capabilities().message_bytes : session_->body_limit();
    const SenderOptions options = agreed(core_.options().sender, peer_, ring.bytes, longest);
    if (ring.bytes == 0 && options.mode == TransferMode::indirect_only) {
        return fail("has no ring, and this side can only send through one");
    }
    if (!is_good(out_.open(options, ring, peer_.lends_memory))) return;
    state_ = State::open;
    wake();
    // The answer that the peer's Distance is waiting for.
    if (session_->has_capacity()) static_cast<void>(controls_.send({}, *session_));
    core_.on_open(); // may destroy this
}

void Conversation::take_control(std::span<const std::byte> body) {
    ControlMessage message;
    const DecodeError error = decode_control(body, message);
    if (error != DecodeError::none) {
        return fail("sent a malformed control message: " + std::string{to_string(error)});
    }
    wake();
    distance_.on_control();
    for (std::size_t i = 0; i < message.advert_count; ++i) {
        if (!is_good(out_.on_advert(message.adverts[i]))) return;
    }
    if (message.acknowledged_bytes) {
        const std::uint64_t before = out_.acknowledged_bytes();
        if (!is_good(out_.on_ack(*message.acknowledged_bytes))) return;
        if (out_.acknowledged_bytes() > before) leave_.on_progress();
    }
    if (message.end_bytes && is_good(in_.on_end(*message.end_bytes))) peer_closes_ = message.closes;
}

void Conversation::on_written(Session&, std::uint32_t notice) {
    Immediate transfer;
    if (state_ != State::open || !in_.lends() ||
        decode_immediate(notice, transfer) != DecodeError::none) {
        return fail("announced a write that cannot be");
    }
    if (is_good(in_.on_transfer(transfer))) wake();
}

void Conversation::on_sent(Session&, Cookie cookie, Outcome outcome) {
    if (ControlChannel::owns(cookie)) {
        controls_.on_sent(cookie);
    } else if (outcome == Outcome::done) { // what was canceled is released by drain()
        out_.on_sent(static_cast<std::uint64_t>(cookie));
        leave_.on_progress();
    }
    wake();
}

void Conversation::on_writable(Session&) {
    wake();
}

bool Conversation::is_good(ProtocolError error) {
    if (error == ProtocolError::none) return true;
    fail("broke the stream protocol: " + std::string{to_string(error)});
    return false;
}

void Conversation::fail(const std::string& what) {
    session_->fail(CloseReason::protocol_error, session_->peer_address() + " " + what);
}

// --- the user's calls -----------------------------------------------------------------------

Status Conversation::send(const Slice& slice, Cookie cookie) {
    if (state_ != State::open) return Status::closed;
    const Status status =
        out_.send(slice, cookie, session_->domain(), core_.transport().loop().now());
    if (status == Status::again) delivery_.owe_writable();
    if (status == Status::ok) wake();
    return status;
}

Status Conversation::receive(const Slice& slice, Cookie cookie, Fill fill) {
    if (state_ != State::open && state_ != State::draining) return Status::closed;
    const Status status =
        in_.receive(slice, cookie, fill, session_ ? &session_->domain() : nullptr);
    if (status == Status::ok) wake();
    return status;
}

void Conversation::shutdown_send() {
    out_.shutdown();
    wake();
}

void Conversation::close() {
    closing_ = true;
    if (state_ == State::opening) return session_->abort();
    if (state_ == State::open) leave_.begin(*session_);
    shutdown_send(); // also one that drains ends now
}

void Conversation::abort() {
    closing_ = true;
    if (session_) session_->abort();
    wake();
}

void Conversation::disconnect() {
    if (session_) session_->abort();
    wake();
}

StreamSocket::Counters Conversation::counters() const {
    return {.sent = out_.counters(),
            .received = in_.counters(),
            .waits_for_capacity = out_.waits_for_capacity(),
            .controls = controls_.sent_count(),
            .latency = out_.latency()};
}

// --- one turn -------------------------------------------------------------------------------

void Conversation::wake() {
    if (!wake_.armed()) wake_.start({});
}

// In this order: copy out of the ring, give the user what is complete, tell the peer (adverts
// before everything else lets it go on directly), send.
void Conversation::progress() {
    if (state_ == State::opening) return;
    delivery_.begin_turn();
    if (state_ == State::ended) return end();
    if (in_.copy_out(core_.options().copy_step_bytes)) wake();
    if (!delivery_.received()) return;
    if (state_ == State::open) tell_peer();
    if (!delivery_.sent()) return;
    if (state_ == State::open && !delivery_.writable()) return;
    if (delivery_.is_held_up()) return wake();
    if (state_ == State::open) shut_down_when_done();
    if (state_ == State::draining) drain();
}

// --- to the peer ----------------------------------------------------------------------------

void Conversation::tell_peer() {
    const bool early = session_->loop().now() < distance_.next_word();
    if (early) word_.start_at(distance_.next_word());
    while (!early && controls_.has_free() && session_->request_capacity()) {
        ControlMessage message;
        in_.collect(message, session_->domain());
        message.end_bytes = out_.next_end();
        message.closes = message.end_bytes && closing_;
        if (message.item_count() == 0 || !controls_.send(message, *session_)) break;
        // Nothing but a long way makes a session's receives more.
        const SessionOptions usual = session_with(core_.options(), in_.lends());
        if (session_->counters().receives > usual.receive_count) distance_.on_told();
    }
    // A connection that broke says so by on_closed.
    if (const auto ring = in_.grow(distance_.gauge(), *session_)) {
        static_cast<void>(ControlChannel::announce(*ring, *session_));
    }
    out_.move(*session_);
}

// --- the end --------------------------------------------------------------------------------

// The peer sends no more. It is told so when all of it is out of the ring, or not wanted any more.
bool Conversation::on_shutdown(Session&) {
    wake();
    return false;
}

void Conversation::shut_down_when_done() {
    if (session_->awaits_confirmation() && (closing_ || in_.unread_bytes() == 0)) {
        if (in_.unread_bytes() > 0) session_->add_unread(1);
        session_->confirm();
    }
    if (!out_.has_told_end() || out_.has_sends()) return;
    if (delivery_.has_ended()) leave_.begin(*session_);
    // Behind the session's end the peer tells nothing of what its user takes, and a slow one would
    // pass for one that takes nothing. But it is to hear at once that this side takes no more.
    if (in_.unread_bytes() > 0 || out_.is_read()) leave_.finish();
}

void Conversation::on_closed(Session&, const Closed& closed) {
    closed_ = closed;
    leave_.forget();
    session_.reset();
    if (state_ == State::opening) return end();
    state_ = State::draining;
    wake();
}

// What can never leave is released at once, and what has arrived is taken before on_closed.
void Conversation::drain() {
    if (out_.has_sends() && closed_.reason == CloseReason::orderly) {
        closed_.reason = CloseReason::unconfirmed;
        closed_.detail = "the peer has closed, and not all that was to be sent had left";
    }
    if (!delivery_.canceled_sends()) return;
    if (delivery_.is_held_up()) return wake();
    if (closing_ || delivery_.has_ended()) return end();
    if (wake_.armed()) return; // there is more to copy, or a new receive
    if (in_.unread_bytes() > 0 && !delivery_.has_lost()) {
        if (!delivery_.lost() || wake_.armed()) return;
    }
    end();
}

void Conversation::end() {
    state_ = State::ended;
    wake_.cancel();
    if (!delivery_.canceled_receives()) return;
    if (delivery_.is_held_up()) return wake();
    core_.on_ended(closed_); // destroys this
}

} // namespace netio::stream::inline v0_2
