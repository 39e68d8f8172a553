// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/conversation.hpp"

#include "stream/core/agreement.hpp"
#include "stream/socket/frames.hpp"

#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <utility>

namespace netio::stream::inline v0_2 {

using Outcome = Completion::Outcome;

// --- opening --------------------------------------------------------------------------------

Conversation::Conversation(StreamSocket& socket, bool accepts)
    : socket_{socket}, accepts_{accepts}, in_{socket.options_.receive_limit_count},
      out_{socket.options_.send_limit_count}, wake_{socket.transport_.loop(),
                                                    [this] { progress(); }} {}

Conversation::Conversation(StreamSocket& socket, const Route& route) : Conversation{socket, false} {
    session_ = std::make_unique<Session>(
        socket.transport_,
        Session::Target{.provider = route.provider,
                        .remote = route.remote,
                        .local_host = route.local_host,
                        .required_receive_bytes = frame_limit_bytes,
                        .offer = route.offer},
        hello(), socket.options_.session, static_cast<Session::Handler&>(*this));
}

Conversation::Conversation(StreamSocket& socket, IncomingSession& incoming)
    : Conversation{socket, true} {
    round_trip_.begin(now());
    session_ = incoming.accept(hello(), socket.options_.session, *this);
}

Conversation::~Conversation() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

netio::Hello Conversation::hello() const {
    netio::Hello hello{.service = Service::stream, .service_data = {}};
    const auto data = encode_hello(hello_of(socket_.options_.sender, socket_.options_.receiver));
    std::ranges::copy(data, hello.service_data.bytes.begin());
    hello.service_data.size = data.size();
    return hello;
}

std::chrono::nanoseconds Conversation::now() const {
    return socket_.transport_.loop().now().time_since_epoch();
}

// Memory is spent on a peer only now that it has finished the handshake.
void Conversation::on_open(Session& session) {
    if (accepts_) round_trip_.end(now());
    const StreamSocket::Options& options = socket_.options_;
    if (decode_hello(session.peer().service_data.span(), peer_) != DecodeError::none) {
        return fail("speaks another version of the stream protocol");
    }
    if (const auto why = misfit(options.sender, options.receiver, peer_); !why.empty()) {
        return fail(std::string{why});
    }
    RemoteRing ring;
    try {
        ring = in_.open(agreed(options.receiver, peer_), session.domain());
        controls_.emplace();
    } catch (const std::exception& error) { // no memory, or no more of it may be locked
        return session.fail(CloseReason::failed, error.what());
    }
    round_trip_.begin(now());
    if (announce(ring) == Status::again) fail("grants no credits");
}

void Conversation::take_first_ring(const RemoteRing& ring) {
    if (!accepts_) round_trip_.end(now());
    const SenderOptions options =
        agreed(socket_.options_.sender, peer_, ring.bytes, session_->capabilities().message_bytes);
    if (ring.bytes == 0 && options.mode == TransferMode::indirect_only) {
        return fail("has no ring, and this side can only send through one");
    }
    out_.open(options, ring);
    state_ = State::open;
    wake();
    if (session_->has_capacity()) static_cast<void>(send_control({})); // the answer: take_control
    socket_.on_open();                                                 // may destroy this
}

// --- what the session reports ---------------------------------------------------------------

void Conversation::on_frame(Session&, const IncomingFrame& frame) {
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
    if (state_ == State::opening) return take_first_ring(ring);
    if (is_good(out_.on_ring(ring))) wake();
}

void Conversation::take_control(std::span<const std::byte> body) {
    ControlMessage message;
    const DecodeError error = decode_control(body, message);
    if (error != DecodeError::none) {
        return fail("sent a malformed control message: " + std::string{to_string(error)});
    }
    wake();
    if (!gauge_) {
        // P11: from sending our first ring until the answer, the peer's first control message;
        // nothing else is under way then. A blocking user may see the answer late, so the
        // handshake is an upper bound.
        round_trip_.end(now());
        const auto given = socket_.options_.round_trip;
        gauge_.emplace(given.count() > 0 ? given : round_trip_.shortest());
    }
    for (std::size_t i = 0; i < message.advert_count; ++i) {
        if (!is_good(out_.on_advert(message.adverts[i]))) return;
    }
    if (message.acknowledged_bytes && !is_good(out_.on_ack(*message.acknowledged_bytes))) return;
    if (message.end_bytes && is_good(in_.on_end(*message.end_bytes))) peer_closes_ = message.closes;
}

void Conversation::on_written(Session&, std::uint32_t notice) {
    Immediate transfer;
    if (state_ != State::open || decode_immediate(notice, transfer) != DecodeError::none) {
        return fail("announced a write that cannot be");
    }
    if (is_good(in_.on_transfer(transfer))) wake();
}

void Conversation::on_sent(Session&, Cookie cookie, Outcome outcome) {
    const auto number = static_cast<std::uint64_t>(cookie);
    if ((number & control_cookie) != 0) {
        controls_->release(static_cast<std::uint32_t>(number & ~control_cookie));
    } else if (outcome == Outcome::done) { // what was canceled is given back by end()
        out_.on_written(number);
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
    const Status status = out_.send(slice, cookie, session_->domain());
    if (status == Status::again) told_.wants_writable = true;
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
    shutdown_send(); // also one that drains ends now
}

void Conversation::abort() {
    closing_ = true;
    if (session_) session_->abort();
    wake();
}

StreamSocket::Counters Conversation::counters() const {
    return {.sent = out_.counters(),
            .received = in_.counters(),
            .waits_for_capacity = out_.waits_for_capacity(),
            .controls = control_count_};
}

// --- one turn -------------------------------------------------------------------------------

void Conversation::wake() {
    if (!wake_.armed()) wake_.start({});
}

// In this order: copy out of the ring, give the user what is complete, tell the peer (adverts
// before everything else lets it go on directly), send.
void Conversation::progress() {
    if (state_ == State::opening) return;
    if (in_.copy_out(socket_.options_.copy_step_bytes)) wake();
    if (!deliver_received()) return;
    if (state_ == State::open) tell_peer();
    if (!deliver_sent()) return;
    if (state_ == State::open) shut_down_when_done();
    if (state_ == State::draining) drain();
}

bool Conversation::deliver_received() {
    const DestructionWatch watch{destroyed_};
    // Those posted in the handler have their turn later: after the end each completes at once.
    for (std::size_t left = in_.receive_count(); left > 0; --left) {
        const auto received = in_.next_done();
        if (!received) break;
        socket_.handler_.on_received(socket_, *received);
        if (watch.destroyed()) return false;
    }
    if (told_.end_of_stream || !in_.has_ended()) return true;
    told_.end_of_stream = true;
    socket_.handler_.on_end_of_stream(socket_);
    return !watch.destroyed();
}

bool Conversation::deliver_sent() {
    const DestructionWatch watch{destroyed_};
    while (const auto cookie = out_.next_done()) {
        socket_.handler_.on_send_completed(socket_, *cookie, Outcome::done);
        if (watch.destroyed()) return false;
    }
    if (state_ != State::open || !told_.wants_writable || out_.is_full()) return true;
    told_.wants_writable = false;
    socket_.handler_.on_writable(socket_);
    return !watch.destroyed();
}

// --- to the peer ----------------------------------------------------------------------------

void Conversation::tell_peer() {
    while (controls_->has_free() && session_->request_capacity()) {
        ControlMessage message;
        in_.collect(message, session_->domain());
        message.end_bytes = out_.next_end();
        message.closes = message.end_bytes && closing_;
        if (message.item_count() == 0 || !send_control(message)) break;
        if (message.end_bytes) end_sent_ = true;
    }
    // A connection that broke says so by on_closed.
    if (const auto ring = in_.grow(gauge_, *session_)) static_cast<void>(announce(*ring));
    out_.write(*session_);
}

bool Conversation::send_control(const ControlMessage& message) {
    Slice slice = controls_->next();
    slice.size = encode_control(message, {slice.data, slice.size});
    ++control_count_;
    const bool fits = slice.size <= frame_extension_limit; // and is copied then
    const OutgoingFrame frame{
        .kind = control_kind,
        .flags = 0,
        .extension = {slice.data, fits ? slice.size : 0},
        .slices = {&slice, fits ? std::size_t{0} : std::size_t{1}},
    };
    if (fits) return session_->send(frame, {}) == Status::ok;
    const Cookie cookie{control_cookie | controls_->take()};
    return session_->send(frame, cookie) == Status::ok;
}

Status Conversation::announce(const RemoteRing& ring) {
    const auto message = encode_ring(ring);
    return session_->send({.kind = ring_kind, .flags = 0, .extension = message, .slices = {}}, {});
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
    if (!end_sent_ || out_.has_sends()) return;
    if (closing_ || told_.end_of_stream) session_->close();
}

void Conversation::on_closed(Session&, const Closed& closed) {
    closed_ = closed;
    session_.reset();
    if (state_ == State::opening) return end();
    state_ = State::draining;
    wake();
}

// What can never leave is released at once, and what has arrived is taken before on_closed.
void Conversation::drain() {
    const DestructionWatch watch{destroyed_};
    while (const auto cookie = out_.next_canceled()) {
        if (closed_.reason == CloseReason::orderly) {
            closed_.reason = CloseReason::unconfirmed;
            closed_.detail = "the peer has closed, and not all that was to be sent had left";
        }
        socket_.handler_.on_send_completed(socket_, *cookie, Outcome::canceled);
        if (watch.destroyed()) return;
    }
    if (closing_ || told_.end_of_stream) return end();
    if (wake_.armed()) return; // there is more to copy, or a new receive
    if (in_.unread_bytes() > 0 && !std::exchange(told_.loss, true)) {
        socket_.handler_.on_lost(socket_, in_.unread_bytes());
        if (watch.destroyed() || wake_.armed()) return;
    }
    end();
}

void Conversation::end() {
    state_ = State::ended;
    wake_.cancel();
    const DestructionWatch watch{destroyed_};
    for (auto received = in_.next_done(); received; received = in_.next_done()) {
        socket_.handler_.on_received(socket_, *received);
        if (watch.destroyed()) return;
    }
    for (auto received = in_.next_canceled(); received; received = in_.next_canceled()) {
        socket_.handler_.on_received(socket_, *received);
        if (watch.destroyed()) return;
    }
    socket_.on_ended(closed_); // destroys this
}

} // namespace netio::stream::inline v0_2
