// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_connection.hpp"

#include "netio/access/auth.hpp"
#include "netio/access/rights.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/frame.hpp"
#include "netio/session/handshake.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace netio::stream::inline v0_3 {

using Outcome = Completion::Outcome;

// --- control messages -----------------------------------------------------------------------

void ControlChannel::open() {
    memory_ = std::make_unique<RegisteredBuffer>(slot_count * control_limit_bytes, Access::send);
    for (std::uint32_t i = 0; i < slot_count; ++i)
        free_.push_back(i);
}

bool ControlChannel::send(const ControlMessage& message, Session& session) {
    const std::uint32_t slot = free_.back();
    Slice slice = memory_->slice(slot * control_limit_bytes, control_limit_bytes);
    slice.size = encode_control(message, {slice.data, slice.size});
    ++sent_count_;
    const bool is_copied = slice.size <= frame_extension_limit;
    const OutgoingFrame frame{
        .kind = control_kind,
        .flags = 0,
        .extension = {slice.data, is_copied ? slice.size : 0},
        .slices = {&slice, is_copied ? std::size_t{0} : std::size_t{1}},
    };
    if (is_copied) return session.send(frame, {}) == Status::ok;
    free_.pop_back();
    return session.send(frame, Cookie{control_cookie | slot}) == Status::ok;
}

Status ControlChannel::announce(const RemoteRing& ring, Session& session) {
    const auto message = encode_ring(ring);
    return session.send({.kind = ring_kind, .flags = 0, .extension = message, .slices = {}}, {});
}

void ControlChannel::on_sent(Cookie cookie) {
    free_.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(cookie)));
}

// --- calls to the user ----------------------------------------------------------------------

Delivery::~Delivery() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

template <typename Call>
bool Delivery::call_user(Call call) {
    ++call_count_;
    const DestructionWatch watch{destroyed_};
    call(socket_.handler, socket_.socket);
    return !watch.destroyed();
}

bool Delivery::report(const Received& received) {
    return call_user([&](auto& handler, auto& socket) { handler.on_received(socket, received); });
}

bool Delivery::report(Cookie sent, Outcome outcome) {
    return call_user(
        [&](auto& handler, auto& socket) { handler.on_send_completed(socket, sent, outcome); });
}

bool Delivery::must_yield() const {
    return call_count_ > 0 && socket_.loop.time_is_up();
}

bool Delivery::report_received() {
    // Receives that the handler posts wait for the next turn: after the end of the stream each of
    // them completes at once.
    for (std::size_t left = in_.receive_count(); left > 0; --left) {
        if (must_yield()) return true;
        const auto received = in_.next_done();
        if (!received) break;
        if (!report(*received)) return false;
    }
    if (has_ended_ || !in_.has_ended() || must_yield()) return true;
    has_ended_ = true;
    return call_user([](auto& handler, auto& socket) { handler.on_end_of_stream(socket); });
}

bool Delivery::report_readable() {
    if (must_yield() || !in_.take_news()) return true;
    return call_user([](auto& handler, auto& socket) { handler.on_readable(socket); });
}

bool Delivery::report_sent() {
    // The count bounds the loop: a send of 0 bytes that the handler posts is done at once.
    for (std::size_t left = out_.send_count(); left > 0 && !must_yield(); --left) {
        const auto cookie = out_.next_done(socket_.loop.now());
        if (!cookie) break;
        if (!report(*cookie, Outcome::done)) return false;
    }
    return true;
}

bool Delivery::report_writable() {
    if (!writable_requested_ || out_.is_full() || must_yield()) return true;
    writable_requested_ = false;
    return call_user([](auto& handler, auto& socket) { handler.on_writable(socket); });
}

bool Delivery::cancel_sends() {
    while (!must_yield()) {
        const auto cookie = out_.next_canceled();
        if (!cookie) break;
        if (!report(*cookie, Outcome::canceled)) return false;
    }
    return true;
}

bool Delivery::report_lost() {
    has_lost_ = true;
    return call_user(
        [&](auto& handler, auto& socket) { handler.on_lost(socket, in_.unread_bytes()); });
}

bool Delivery::cancel_receives() {
    while (!must_yield()) {
        auto received = in_.next_done();
        if (!received) received = in_.next_canceled();
        if (!received) break;
        if (!report(*received)) return false;
    }
    return true;
}

// --- opening --------------------------------------------------------------------------------

namespace {

// The peer's key has the right to write into this process.
bool has_right(const IncomingSession& incoming) {
    const access::Rights* const rights = incoming.rights();
    return rights != nullptr && rights->rma;
}

RemoteWriteMode mode_for(RemoteWrites choice, access::Protection protection, bool may_write) {
    if (protection >= access::Protection::integrity) return RemoteWriteMode::sealed();
    return RemoteWriteMode::choose(choice, may_write);
}

// With keys, the key of the peer decides, even if the options trust all peers.
RemoteWrites choice_for(const IncomingSession& incoming, RemoteWrites choice) {
    const bool trusts_all = choice == RemoteWrites::trusted && incoming.rights() != nullptr;
    return trusts_all ? RemoteWrites::guarded : choice;
}

access::Protection protection_of(const Session::Target& target) {
    return target.auth ? target.auth->protection() : access::Protection::none;
}

netio::Hello session_hello(const StreamSocket::Options& options, const RemoteWriteMode& mode) {
    netio::Hello hello{.service = Service::stream, .service_data = {}};
    const auto data = encode_hello(hello_of(options.sender, options.receiver, mode.enabled()));
    std::ranges::copy(data, hello.service_data.bytes.begin());
    hello.service_data.size = data.size();
    return hello;
}

// If bytes arrive in frames, the session's receives have the size of these frames.
SessionOptions session_options(const StreamSocket::Options& options, const RemoteWriteMode& mode) {
    SessionOptions session = options.session;
    session.remote_writes = mode.enabled();
    if (!mode.enabled()) {
        session.receive_buffer_bytes = frame_header_bytes + options.frame_bytes;
        session.receive_count = options.frame_count;
    }
    return session;
}

// The error text for the case that the session opened, but the stream did not.
std::string no_ring_of(const Session& session, std::chrono::milliseconds waited) {
    return session.peer_address() + " has not announced its ring within " +
           std::to_string(waited.count()) + " ms";
}

} // namespace

StreamConnection::StreamConnection(StreamSocket::Impl& socket, bool accepts, RemoteWriteMode mode)
    : socket_{socket}, rtt_{now(), accepts, socket.options.round_trip},
      in_{socket.options.receive_limit_count, mode}, out_{socket.options.send_limit_count},
      delivery_{socket, in_, out_}, wake_{socket.loop, [this] { progress(); }},
      control_timer_{socket.loop, [this] { wake(); }},
      ring_due_{socket.loop,
                [this] {
                    session_->fail(
                        CloseReason::handshake_timeout,
                        no_ring_of(*session_, socket_.options.session.handshake_timeout));
                }},
      leave_{socket.loop, socket.options.session} {}

StreamConnection::StreamConnection(StreamSocket::Impl& socket, Session::Target target)
    : StreamConnection{socket, false,
                       mode_for(socket.options.remote_writes, protection_of(target),
                                socket.transport.guards_memory(target.provider))} {
    target.required_receive_bytes = frame_limit_bytes;
    session_ = std::make_unique<Session>(
        socket.transport, target, session_hello(socket.options, in_.mode()),
        session_options(socket.options, in_.mode()), static_cast<Session::Handler&>(*this));
}

StreamConnection::StreamConnection(StreamSocket::Impl& socket, IncomingSession& incoming)
    : StreamConnection{socket, true,
                       mode_for(choice_for(incoming, socket.options.remote_writes),
                                incoming.protection(),
                                incoming.guards_memory() || has_right(incoming))} {
    session_ = incoming.accept(session_hello(socket.options, in_.mode()),
                               session_options(socket.options, in_.mode()), *this);
}

RttEstimator::Duration StreamConnection::now() const {
    return socket_.loop.now().time_since_epoch();
}

// Memory is spent on a peer only after it has finished the handshake.
void StreamConnection::on_open(Session& session) {
    rtt_.on_session_open(now());
    const StreamSocket::Options& options = socket_.options;
    if (decode_hello(session.peer().service_data.span(), peer_) != DecodeError::none) {
        return fail("speaks another version of the stream protocol");
    }
    if (peer_.lends_memory && !in_.mode().peer_may_enable()) {
        return fail("offers memory for writes, which sealed frames exclude");
    }
    if (const auto why = incompatibility(options.sender, options.receiver, peer_); !why.empty()) {
        return fail(std::string{why});
    }
    RemoteRing ring;
    try {
        ring = in_.open(agreed(options.receiver, peer_, in_.mode().enabled()), session.domain());
        controls_.open();
    } catch (const std::exception& error) { // no memory, or no more of it may be locked
        return session.fail(CloseReason::failed, error.what());
    }
    rtt_.on_ring_sent(now());
    const Status told = ControlChannel::announce(ring, session);
    if (told == Status::again) return fail("grants no credits");
    ring_due_.start(options.session.handshake_timeout);
}

// --- what the session reports ---------------------------------------------------------------

void StreamConnection::on_frame(Session&, const IncomingFrame& frame) {
    if (frame.kind == bytes_kind && state_ == State::open && !in_.mode().enabled()) {
        FrameNotice notice;
        if (decode_frame_flags(frame.flags, notice) != DecodeError::none) {
            return fail("sent bytes with impossible flags");
        }
        if (is_good(in_.on_frame(notice, frame.body))) wake();
        return;
    }
    const bool is_ring = frame.kind == ring_kind;
    if (frame.flags != 0 ||
        !(is_ring || (frame.kind == control_kind && state_ != State::opening))) {
        return fail("sent a frame of kind " + std::to_string(frame.kind) + " out of turn");
    }
    is_ring ? on_ring(frame.body) : on_control(frame.body);
}

void StreamConnection::on_ring(std::span<const std::byte> body) {
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
    rtt_.on_ring_arrived(now());
    const std::size_t longest =
        peer_.lends_memory ? session_->capabilities().message_bytes : session_->body_limit();
    const SenderOptions options = agreed(socket_.options.sender, peer_, ring.bytes, longest);
    if (ring.bytes == 0 && options.mode == TransferMode::indirect_only) {
        return fail("has no ring, and this side can only send through one");
    }
    if (!is_good(out_.open(options, ring, peer_.lends_memory))) return;
    state_ = State::open;
    wake();
    // The answer that the peer's RttEstimator measures.
    if (session_->has_capacity()) static_cast<void>(controls_.send({}, *session_));
    socket_.on_open(); // may destroy this
}

void StreamConnection::on_control(std::span<const std::byte> body) {
    ControlMessage message;
    const DecodeError error = decode_control(body, message);
    if (error != DecodeError::none) {
        return fail("sent a malformed control message: " + std::string{to_string(error)});
    }
    wake();
    rtt_.on_control(now());
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

void StreamConnection::on_written(Session&, std::uint32_t notice) {
    Immediate transfer;
    if (state_ != State::open || !in_.mode().enabled() ||
        decode_immediate(notice, transfer) != DecodeError::none) {
        return fail("announced an impossible write");
    }
    if (is_good(in_.on_transfer(transfer))) wake();
}

void StreamConnection::on_sent(Session&, Cookie cookie, Outcome outcome) {
    if (ControlChannel::owns(cookie)) {
        controls_.on_sent(cookie);
    } else if (outcome == Outcome::done) { // drain() releases canceled sends
        out_.on_sent(static_cast<std::uint64_t>(cookie));
        leave_.on_progress();
    }
    wake();
}

void StreamConnection::on_writable(Session&) {
    wake();
}

bool StreamConnection::is_good(ProtocolError error) {
    if (error == ProtocolError::none) return true;
    fail("broke the stream protocol: " + std::string{to_string(error)});
    return false;
}

void StreamConnection::fail(const std::string& what) {
    session_->fail(CloseReason::protocol_error, session_->peer_address() + " " + what);
}

// --- the user's calls -----------------------------------------------------------------------

Status StreamConnection::send(const Slice& slice, Cookie cookie) {
    if (state_ != State::open) return Status::closed;
    const Status status = out_.send(slice, cookie, session_->domain(), socket_.loop.now());
    if (status == Status::again) delivery_.request_writable();
    if (status == Status::ok) wake();
    return status;
}

Status StreamConnection::receive(const Slice& slice, Cookie cookie, Fill fill) {
    if (state_ != State::open && state_ != State::draining) return Status::closed;
    const Status status =
        in_.receive(slice, cookie, fill, session_ ? &session_->domain() : nullptr);
    if (status == Status::ok) wake();
    return status;
}

void StreamConnection::consume(std::size_t bytes) {
    in_.consume(bytes);
    if (bytes > 0) wake(); // acknowledges them, and reports the end of the stream after the last
}

void StreamConnection::shutdown_send() {
    out_.shutdown();
    wake();
}

void StreamConnection::close() {
    closing_ = true;
    if (state_ == State::opening) return session_->abort();
    if (state_ == State::open) leave_.begin(*session_);
    shutdown_send(); // also wakes a draining connection
}

void StreamConnection::abort() {
    closing_ = true;
    if (session_) session_->abort();
    wake();
}

void StreamConnection::disconnect() {
    if (session_) session_->abort();
    wake();
}

StreamSocket::Counters StreamConnection::counters() const {
    return {.sent = out_.counters(),
            .received = in_.counters(),
            .waits_for_capacity = out_.waits_for_capacity(),
            .controls = controls_.sent_count(),
            .latency = out_.latency()};
}

// --- one turn -------------------------------------------------------------------------------

void StreamConnection::wake() {
    if (!wake_.armed()) wake_.start({});
}

// In this order: copy out of the ring, report completed operations to the user, send control
// messages (an early advert lets the peer continue directly), send bytes.
void StreamConnection::progress() {
    if (state_ == State::opening) return;
    delivery_.begin_turn();
    if (state_ == State::ended) return end();
    if (in_.copy_out(socket_.options.copy_step_bytes)) wake();
    if (!delivery_.report_received() || !delivery_.report_readable()) return;
    if (state_ == State::open) send_controls();
    if (!delivery_.report_sent()) return;
    if (state_ == State::open && !delivery_.report_writable()) return;
    if (delivery_.must_yield()) return wake();
    if (state_ == State::open) shut_down_when_done();
    if (state_ == State::draining) drain();
}

void StreamConnection::send_controls() {
    const bool early = socket_.loop.now() < next_control_;
    if (early) control_timer_.start_at(next_control_);
    while (!early && controls_.has_free() && session_->request_capacity()) {
        ControlMessage message;
        in_.collect(message, session_->domain());
        message.end_bytes = out_.next_end();
        message.closes = message.end_bytes && closing_;
        if (message.item_count() == 0 || !controls_.send(message, *session_)) break;
        // A session has more receives than configured only over a long way.
        const SessionOptions configured = session_options(socket_.options, in_.mode());
        if (session_->counters().receives > configured.receive_count) {
            next_control_ = socket_.loop.now() + rtt_.control_pause();
        }
    }
    // If the connection has broken, on_closed follows.
    if (const auto ring = in_.grow(rtt_.gauge(), *session_)) {
        static_cast<void>(ControlChannel::announce(*ring, *session_));
    }
    out_.move(*session_);
}

// --- the end --------------------------------------------------------------------------------

// The peer sends no more. The session confirms this when the ring is empty, or when the user
// receives no more.
bool StreamConnection::on_shutdown(Session&) {
    wake();
    return false;
}

void StreamConnection::shut_down_when_done() {
    if (session_->awaits_confirmation() && (closing_ || in_.unread_bytes() == 0)) {
        if (in_.unread_bytes() > 0) session_->add_unread(1);
        session_->confirm();
    }
    if (!out_.has_sent_end() || out_.has_sends()) return;
    if (delivery_.has_ended()) leave_.begin(*session_);
    // After the session's end the peer acknowledges nothing, so a slow user of the peer would look
    // like one that reads nothing. But the peer must learn at once that this side reads no more.
    if (in_.unread_bytes() > 0 || out_.is_read()) leave_.finish();
}

void StreamConnection::on_closed(Session&, const Closed& closed) {
    closed_ = closed;
    leave_.forget();
    session_.reset();
    if (state_ == State::opening) return end();
    state_ = State::draining;
    wake();
}

// Sends that cannot be sent are released at once; bytes that have arrived are delivered before
// on_closed.
void StreamConnection::drain() {
    if (out_.has_sends() && closed_.reason == CloseReason::orderly) {
        closed_.reason = CloseReason::unconfirmed;
        closed_.detail = "the peer has closed before everything was sent";
    }
    if (!delivery_.cancel_sends()) return;
    if (delivery_.must_yield()) return wake();
    if (closing_ || delivery_.has_ended()) return end();
    if (wake_.armed()) return; // there is more to copy, or a new receive
    if (in_.unread_bytes() > 0 && !delivery_.has_lost()) {
        if (!delivery_.report_lost() || wake_.armed()) return;
    }
    end();
}

void StreamConnection::end() {
    state_ = State::ended;
    wake_.cancel();
    if (!delivery_.cancel_receives()) return;
    if (delivery_.must_yield()) return wake();
    socket_.on_ended(closed_); // destroys this
}

} // namespace netio::stream::inline v0_3
