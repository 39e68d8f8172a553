// SPDX-License-Identifier: Apache-2.0

// The life of a stream socket: connecting, what the session reports, the end. How bytes travel is
// in stream_socket_data.cpp, and all about rings in stream_socket_ring.cpp.

#include "stream/socket/stream_socket.hpp"

#include "stream/socket/frames.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <stdexcept>

namespace netio::stream::inline v0_2 {

using Outcome = Completion::Outcome;

StreamOptions published_stream(std::uint64_t ring_bytes) {
    return {.sender = published_sender(0), .receiver = published_receiver(ring_bytes)};
}

void validate(const StreamOptions& options) {
    SenderOptions sender = options.sender;
    sender.ring_bytes = 1; // whatever the peer has
    validate(sender);
    validate(options.receiver);
    validate(options.session);
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    require(options.session.remote_writes, "session.remote_writes must be true for a stream");
    require(options.session.receive_bytes >= frame_limit_bytes,
            "session.receive_bytes must be at least 1312 for a stream's control messages");
    require(options.session.send_count >= 4, "session.send_count must be at least 4 for a stream");
    require(options.send_limit_count > 0 && options.receive_limit_count > 0,
            "send_limit_count and receive_limit_count must be at least 1");
    require(options.copy_step_bytes > 0, "copy_step_bytes must be at least 1");
    require(options.round_trip.count() >= 0, "round_trip must not be negative");
    require(options.sender.advert_limit_count <= 65'535,
            "sender.advert_limit_count must be at most 65535");
}

StreamSocket::StreamSocket(Transport& transport, StreamOptions options, Handler& handler)
    : transport_{transport}, options_{std::move(options)}, handler_{handler},
      wake_{transport.loop(), [this] { progress(); }} {
    validate(options_);
}

StreamSocket::~StreamSocket() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- connecting -----------------------------------------------------------------------------

void StreamSocket::connect(const Address& remote) {
    NETIO_CHECK_MSG(state_ == State::idle, "the socket is connected or connecting");
    reset();
    remote_ = remote;
    providers_ = transport_.providers_to(remote);
    std::ranges::reverse(providers_);
    try_next_provider();
}

void StreamSocket::try_next_provider() {
    const std::string provider = providers_.back();
    providers_.pop_back();
    session_ =
        std::make_unique<Session>(transport_,
                                  Session::Target{.provider = provider,
                                                  .remote = remote_,
                                                  .local_host = options_.local_host,
                                                  .required_receive_bytes = frame_limit_bytes},
                                  hello(), options_.session, static_cast<Session::Handler&>(*this));
    state_ = State::linking;
}

void StreamSocket::accept(IncomingSession& incoming) {
    accepted_at_ = transport_.loop().now();
    session_ = incoming.accept(hello(), options_.session, *this);
    state_ = State::linking;
}

netio::Hello StreamSocket::hello() const {
    netio::Hello hello{.service = Service::stream, .service_data = {}};
    const auto data = encode_hello(
        {.advert_limit_count = static_cast<std::uint16_t>(options_.sender.advert_limit_count),
         .advertises = options_.receiver.mode != TransferMode::indirect_only,
         .needs_adverts = options_.sender.mode == TransferMode::direct_only,
         .reports_no_advert = options_.receiver.report_no_advert,
         .ring_may_grow = ring_may_grow(options_.receiver)});
    std::ranges::copy(data, hello.service_data.bytes.begin());
    hello.service_data.size = data.size();
    return hello;
}

void StreamSocket::reset() {
    sender_.reset();
    receiver_.reset();
    accepted_at_.reset();
    round_trip_ = RingGauge::Duration::max();
    gauge_.reset();
    rings_ = {};
    first_ring_ = 0;
    sends_ = {};
    receives_ = {};
    first_send_ = first_receive_ = 0;
    finishing_ = fin_sent_ = fin_received_ = end_told_ = closing_ = waiting_for_room_ = false;
    counters_ = {};
    closed_ = {};
}

// Memory is spent on a peer only now that it has finished the handshake.
void StreamSocket::on_open(Session& session) {
    if (accepted_at_) note_round_trip(*accepted_at_);
    const auto peer_data = session.peer().service_data.span();
    if (decode_hello(peer_data, peer_) != DecodeError::none) {
        return fail("speaks another version of the stream protocol");
    }
    if (peer_.needs_adverts && options_.receiver.mode == TransferMode::indirect_only) {
        return fail("is direct-only, and this side advertises nothing (indirect-only)");
    }
    if (!peer_.advertises && options_.sender.mode == TransferMode::direct_only) {
        return fail("advertises nothing (indirect-only), and this side is direct-only");
    }
    ReceiverOptions options = options_.receiver;
    options.advert_limit_count =
        std::min<std::size_t>(options.advert_limit_count, peer_.advert_limit_count);
    if (peer_.needs_adverts) options.advert_threshold_bytes = 0;
    RemoteRing ring;
    try {
        receiver_.emplace(options);
        if (options.ring_bytes > 0) ring = add_ring(options.ring_bytes);
        control_memory_ = std::make_unique<RegisteredBuffer>(
            control_slot_count * control_limit_bytes, Access::send);
    } catch (const std::exception& error) { // no memory, or no more of it may be locked
        return session.fail(CloseReason::failed, error.what());
    }
    free_controls_.resize(control_slot_count);
    for (std::uint32_t i = 0; i < control_slot_count; ++i)
        free_controls_[i] = i;
    ring_announced_at_ = transport_.loop().now();
    if (announce(ring) == Status::again) fail("grants no credits");
}

// --- what the session reports ------------------------------------------------------------------

void StreamSocket::on_frame(Session&, const IncomingFrame& frame) {
    const bool is_ring = frame.kind == ring_kind;
    if (frame.flags != 0 ||
        !(is_ring || (frame.kind == control_kind && state_ != State::linking))) {
        return fail("sent a frame of kind " + std::to_string(frame.kind) + " out of turn");
    }
    is_ring ? take_ring(frame.body) : take_control(frame.body);
}

void StreamSocket::take_control(std::span<const std::byte> body) {
    ControlMessage message;
    const DecodeError error = decode_control(body, message);
    if (error != DecodeError::none) {
        return fail("sent a malformed control message: " + std::string{to_string(error)});
    }
    wake();
    make_gauge();
    for (std::size_t i = 0; i < message.advert_count; ++i) {
        if (!is_good(sender_->on_advert(message.adverts[i]))) return;
    }
    if (message.acknowledged_bytes && !is_good(sender_->on_ack(*message.acknowledged_bytes))) {
        return;
    }
    if (message.end_bytes && is_good(receiver_->on_fin(*message.end_bytes))) fin_received_ = true;
}

void StreamSocket::on_written(Session&, std::uint32_t notice) {
    Immediate immediate;
    if (state_ != State::open || decode_immediate(notice, immediate) != DecodeError::none) {
        return fail("announced a write that cannot be");
    }
    if (is_good(receiver_->on_transfer(immediate.kind, immediate.bytes, immediate.notice))) wake();
}

void StreamSocket::on_sent(Session&, Cookie cookie, Outcome outcome) {
    const auto number = static_cast<std::uint64_t>(cookie);
    if ((number & control_cookie) != 0) {
        free_controls_.push_back(static_cast<std::uint32_t>(number & ~control_cookie));
    } else if (outcome == Outcome::done) {
        sender_->on_transfer_done(number);
    }
    wake();
}

void StreamSocket::on_writable(Session&) {
    wake();
}

bool StreamSocket::is_good(ProtocolError error) {
    if (error == ProtocolError::none) return true;
    fail("broke the stream protocol: " + std::string{to_string(error)});
    return false;
}

void StreamSocket::fail(const std::string& what) {
    session_->fail(CloseReason::protocol_error, session_->peer_address() + " " + what);
}

// --- the end --------------------------------------------------------------------------------

void StreamSocket::finish() {
    if (state_ != State::open || finishing_) return;
    finishing_ = true;
    sender_->finish();
    wake();
}

void StreamSocket::close() {
    closing_ = true;
    if (state_ == State::linking) return session_->abort();
    finish();
    wake(); // also a draining socket ends now
}

void StreamSocket::abort() {
    closing_ = true;
    providers_.clear();
    if (session_) session_->abort();
    wake();
}

bool StreamSocket::on_shutdown(Session&) {
    wake();
    return false; // not before everything is out of the ring, or is not wanted any more
}

void StreamSocket::confirm_when_taken() {
    if (!session_->awaits_confirmation()) return;
    const bool unread = receiver_ && receiver_->ring_used_bytes() > 0;
    if (unread && !closing_) return;
    if (unread) session_->add_unread(1);
    session_->confirm();
}

void StreamSocket::on_closed(Session&, const Closed& closed) {
    session_.reset();
    if (state_ == State::linking) {
        if (!providers_.empty() && closed.reason != CloseReason::local) {
            try {
                return try_next_provider();
            } catch (const FabricError& error) {
                closed_ = {.reason = CloseReason::failed,
                           .detail = error.what(),
                           .required_receive_bytes = 0};
                return end();
            }
        }
        closed_ = closed;
        return end();
    }
    closed_ = closed;
    state_ = State::draining;
    wake();
}

void StreamSocket::end_link_when_done() {
    if (!session_) return;
    confirm_when_taken();
    if (!fin_sent_ || !sends_.empty()) return;
    if (closing_ || end_told_) session_->close();
}

// The last: everything outstanding is given back, and then the reason is told.
void StreamSocket::end() {
    state_ = State::ending;
    wake_.cancel();
    counters_ = counters();
    const std::uint64_t filled = receiver_ ? receiver_->front_filled_bytes() : 0;
    const DestructionWatch watch{destroyed_};
    while (!sends_.empty()) {
        handler_.on_send_completed(*this, sends_.pop_front().key, Outcome::canceled);
        if (watch.destroyed()) return;
    }
    for (std::uint64_t bytes = filled; !receives_.empty(); bytes = 0) {
        handler_.on_received(*this, {.key = receives_.pop_front().key,
                                     .bytes = bytes,
                                     .outcome = Outcome::canceled,
                                     .end_of_stream = false});
        if (watch.destroyed()) return;
    }
    sender_.reset();
    receiver_.reset();
    rings_ = {};
    control_memory_.reset();
    state_ = State::idle;
    const Closed closed = std::move(closed_);
    handler_.on_closed(*this, closed); // may destroy this socket
}

} // namespace netio::stream::inline v0_2
