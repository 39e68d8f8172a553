// SPDX-License-Identifier: Apache-2.0

// The life of a session: handshake, receiving, heartbeats, the end. Sending is in session_send.cpp.

#include "netio/session/session.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace netio::inline v0_2 {
namespace {

constexpr std::size_t send_count_minimum = 2; // one slot is kept for credits

void require_option(bool good, const std::string& rule) {
    if (!good) throw std::invalid_argument{rule};
}

std::vector<std::uint32_t> all_free(std::size_t count) {
    std::vector<std::uint32_t> free(count);
    for (std::size_t i = 0; i < count; ++i)
        free[i] = static_cast<std::uint32_t>(count - 1 - i);
    return free;
}

} // namespace

void validate(const SessionOptions& options) {
    require_option(options.receive_bytes >= least_receive_bytes &&
                       options.receive_bytes <= UINT32_MAX,
                   "receive_bytes must be from 256 to 4294967295");
    require_option(options.receive_count >= least_session_receive_count &&
                       options.receive_count <= 16384,
                   "receive_count must be from 4 to 16384");
    require_option(options.send_count >= send_count_minimum && options.send_count <= 1024,
                   "send_count must be from 2 to 1024");
    require_option(options.heartbeat.count() >= 0 && options.heartbeat.count() <= UINT16_MAX,
                   "heartbeat must be from 0 (off) to 65535 ms");
    require_option(options.dead_after.count() == 0 || options.dead_after >= 2 * options.heartbeat,
                   "dead_after must be 0 (never) or at least twice the heartbeat");
    require_option(options.connect_timeout.count() > 0 && options.handshake_timeout.count() > 0 &&
                       options.close_timeout.count() > 0,
                   "time-outs must be positive");
    require_option(options.close_limit >= options.close_timeout,
                   "close_limit must not be less than close_timeout");
}

QueueLimits Session::limits_of(const SessionOptions& options) {
    return {.send_count = options.send_count,
            .receive_count = options.receive_count,
            .remote_writes = options.remote_writes};
}

Session::Session(Transport& transport, const Hello& hello, const SessionOptions& options,
                 Handler& handler)
    : loop_{transport.loop()}, options_{(validate(options), options)}, hello_{hello},
      handler_{handler}, slot_memory_{options.send_count * slot_bytes},
      receive_memory_{options.receive_bytes * options.receive_count},
      slots_(options.send_count), free_slots_{all_free(options.send_count)},
      last_received_{loop_.now()}, deadline_{loop_, [this] { on_deadline(); }},
      heartbeat_{loop_, [this] { beat(); }} {
    hello_.receive_bytes = static_cast<std::uint32_t>(options.receive_bytes);
    hello_.receive_count = static_cast<std::uint16_t>(options.receive_count);
    hello_.heartbeat_ms = static_cast<std::uint16_t>(options.heartbeat.count());
    hello_.instance = process_instance();
}

Session::Session(Transport& transport, const Target& target, const Hello& hello,
                 const SessionOptions& options, Handler& handler)
    : Session{transport, hello, options, handler} {
    required_receive_bytes_ = target.required_receive_bytes;
    connection_ = transport.connect_over({.provider = target.provider,
                                          .remote = target.remote,
                                          .local_host = target.local_host,
                                          .offer = target.offer},
                                         limits_of(options_), *this);
    post_all_receives();
    deadline_.start(options_.connect_timeout);
    ConnectionData data;
    const std::size_t size = encode(hello_, data);
    connection_->open(std::span{data}.first(size));
}

Session::Session(Transport& transport, ConnectionRequest& request, const Hello& peer,
                 const Hello& hello, const SessionOptions& options, Handler& handler)
    : Session{transport, hello, options, handler} {
    peer_ = peer;
    accepted_ = true;
    credits_.emplace(credit_options());
    // Before there is an endpoint: a request that has one cannot be rejected with a reason.
    MemoryDomain& domain = request.domain();
    receive_memory_.registration(domain);
    slot_memory_.registration(domain);
    connection_ = request.make_connection(limits_of(options_), *this);
    post_all_receives();
    deadline_.start(options_.handshake_timeout);
    ConnectionData data;
    const std::size_t size = encode(hello_, data);
    connection_->open(std::span{data}.first(size));
}

Session::~Session() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

CreditOptions Session::credit_options() const noexcept {
    return {.receive_count = static_cast<std::uint32_t>(options_.receive_count),
            .peer_receive_count = peer_.receive_count};
}

void Session::post_all_receives() {
    for (std::size_t i = 0; i < options_.receive_count; ++i) {
        const Slice slice =
            receive_memory_.slice(i * options_.receive_bytes, options_.receive_bytes);
        // A connection that broke already says so through on_closed.
        if (connection_->post_receive({&slice, 1}, Cookie{i}) != Status::ok) return;
    }
}

// --- handshake ------------------------------------------------------------------------------

void Session::on_connected(std::span<const std::byte> data) {
    if (state_ != State::opening) return;
    last_received_ = loop_.now();
    if (accepted_) {
        state_ = State::awaiting_open; // the deadline goes on
        return;
    }
    const RejectCode problem = decode(data, hello_.service_data.size, peer_);
    if (problem != RejectCode::none || peer_.service != hello_.service) {
        fail(CloseReason::protocol_error,
             peer_address() + " accepted with connection data that is not ours");
        return;
    }
    if (judge_receives(peer_, required_receive_bytes_) != RejectCode::none) {
        fail(CloseReason::protocol_error,
             peer_address() + " accepted with " + std::to_string(peer_.receive_count) +
                 " receive buffers of " + std::to_string(peer_.receive_bytes) +
                 " bytes, which is too little");
        return;
    }
    credits_.emplace(credit_options());
    if (send_control(FrameKind::open)) become_open();
}

bool Session::take_shutdown() {
    await_peer();
    const DestructionWatch watch{destroyed_};
    if (handler_.on_shutdown(*this) && !watch.destroyed()) shutdown_.confirm();
    return !watch.destroyed();
}

bool Session::Handler::on_shutdown(Session&) {
    return true;
}

void Session::become_open() {
    deadline_.cancel();
    state_ = State::open;
    if (options_.heartbeat.count() > 0) heartbeat_.start(options_.heartbeat);
    handler_.on_open(*this);
}

void Session::on_rejected(std::span<const std::byte> data) {
    rejection_ = decode_rejection(data);
}

// --- receiving ------------------------------------------------------------------------------

void Session::on_completion(const Completion& completion) {
    switch (completion.kind) {
    case Completion::Kind::receive:
        return on_receive_completion(completion);
    case Completion::Kind::remote_write:
        return on_remote_write(completion);
    case Completion::Kind::send:
    case Completion::Kind::write:
        return on_send_completion(completion);
    }
}

void Session::on_receive_completion(const Completion& completion) {
    if (state_ == State::closing || completion.outcome != Completion::Outcome::done) return;
    if (!credits_) {
        return fail(CloseReason::protocol_error, peer_address() + " sent before it had accepted");
    }
    const auto index = static_cast<std::size_t>(completion.cookie);
    if (!take_frame({receive_memory_.data() + index * options_.receive_bytes, completion.bytes})) {
        return;
    }
    if (!repost_receive(completion.cookie)) return;
    return_credits();
    announce_capacity();
}

bool Session::repost_receive(Cookie cookie) {
    const Slice slice = receive_memory_.slice(
        static_cast<std::size_t>(cookie) * options_.receive_bytes, options_.receive_bytes);
    if (connection_->post_receive({&slice, 1}, cookie) != Status::ok) return false;
    credits_->on_reposted();
    return true;
}

bool Session::take_credits(std::uint32_t returned) {
    switch (credits_->on_received(returned)) {
    case CreditError::none:
        ledger_.on_credits(returned);
        if (returned > 0) await_peer();
        return true;
    case CreditError::overrun:
        fail(CloseReason::protocol_error,
             peer_address() + " granted more credits than it has receives");
        return false;
    case CreditError::unpermitted:
        fail(CloseReason::protocol_error, peer_address() + " sent without a credit");
        return false;
    }
    return false;
}

void Session::on_remote_write(const Completion& completion) {
    if (state_ == State::closing || completion.outcome != Completion::Outcome::done) return;
    last_received_ = loop_.now();
    if (state_ != State::open) {
        return fail(CloseReason::protocol_error,
                    peer_address() + " did not send an open frame first");
    }
    if (!take_credits(0)) return;
    if (completion.consumed_receive) {
        if (!repost_receive(completion.cookie)) return;
    } else {
        credits_->on_reposted(); // it counted against the queue of completions only
    }
    const DestructionWatch watch{destroyed_};
    if (!shutdown_.peer_may_send()) {
        return fail(CloseReason::protocol_error, peer_address() + " wrote after its shutdown");
    }
    handler_.on_written(*this, completion.immediate);
    if (watch.destroyed() || state_ == State::closing) return;
    return_credits();
    announce_capacity();
}

void Session::Handler::on_written(Session& session, std::uint32_t) {
    session.fail(CloseReason::protocol_error, "this service takes no remote writes");
}

bool Session::take_frame(std::span<const std::byte> bytes) {
    last_received_ = loop_.now();
    if (bytes.size() < frame_header_bytes) {
        fail(CloseReason::protocol_error, peer_address() + " sent a frame without a header");
        return false;
    }
    const FrameHeader header = decode_frame_header(bytes.first<frame_header_bytes>());
    if (header.sequence != expected_sequence_) {
        fail(CloseReason::protocol_error, peer_address() + " sent frame " +
                                              std::to_string(header.sequence) + ", expected " +
                                              std::to_string(expected_sequence_));
        return false;
    }
    ++expected_sequence_;
    if (!take_credits(header.credits)) return false;
    const DestructionWatch watch{destroyed_};
    if (header.kind < first_service_kind) {
        if (!take_session_frame(header, bytes.subspan(frame_header_bytes))) return false;
    } else if (state_ == State::open && shutdown_.peer_may_send()) {
        handler_.on_frame(*this, {.kind = header.kind,
                                  .flags = header.flags,
                                  .body = bytes.subspan(frame_header_bytes)});
    } else if (state_ == State::awaiting_open) {
        fail(CloseReason::protocol_error, peer_address() + " did not send an open frame first");
    } else {
        fail(CloseReason::protocol_error, peer_address() + " sent after its shutdown");
    }
    return !watch.destroyed() && state_ != State::closing;
}

bool Session::take_session_frame(const FrameHeader& header, std::span<const std::byte> body) {
    const DestructionWatch watch{destroyed_};
    const auto kind = static_cast<FrameKind>(header.kind);
    if ((kind == FrameKind::open) != (state_ == State::awaiting_open)) {
        fail(CloseReason::protocol_error, peer_address() + " sent its open frame out of turn");
        return false;
    }
    switch (kind) {
    case FrameKind::open:
        become_open();
        return !watch.destroyed();
    case FrameKind::credit:
    case FrameKind::heartbeat:
        return true;
    case FrameKind::written:
        if (!options_.remote_writes || body.size() != sizeof(std::uint32_t)) break;
        if (!shutdown_.peer_may_send()) break;
        handler_.on_written(*this, wire::load<std::uint32_t>(body.data()));
        return !watch.destroyed();
    case FrameKind::shutdown:
        if (!body.empty() || !shutdown_.on_shutdown()) break;
        return take_shutdown();
    case FrameKind::shutdown_ack:
        if (body.size() != sizeof(std::uint32_t) ||
            !shutdown_.on_ack(wire::load<std::uint32_t>(body.data()))) {
            break;
        }
        await_peer();
        return true;
    }
    fail(CloseReason::protocol_error,
         peer_address() + " sent an unexpected frame of kind " + std::to_string(header.kind));
    return false;
}

// --- heartbeats -----------------------------------------------------------------------------

void Session::beat() {
    const TimePoint now = loop_.now();
    if (options_.dead_after.count() > 0 && now - last_received_ > options_.dead_after / 2) {
        // Silence alone proves nothing: a stopped or busy process does not answer, but its host
        // does. Asking at half time lets the provider look for such signs before it matters.
        const TimePoint sign = connection_->last_sign_of_life(options_.heartbeat);
        const bool can_tell = sign != TimePoint::min() || peer_.heartbeat_ms > 0;
        if (can_tell && now - std::max(sign, last_received_) > options_.dead_after) {
            fail(CloseReason::silent, "no sign of life from " + peer_address() + " for more than " +
                                          std::to_string(options_.dead_after.count()) + " ms");
            return;
        }
    }
    if (!std::exchange(sent_since_beat_, false) && may_send_data() && !shutdown_.is_silent()) {
        send_control(FrameKind::heartbeat);
        sent_since_beat_ = false;
    }
    heartbeat_.start(options_.heartbeat);
}

// --- the end --------------------------------------------------------------------------------

void Session::close() {
    if (state_ == State::closing) return;
    if (state_ != State::open) return abort(); // nothing was sent
    if (!shutdown_.close()) return;
    close_by_ = loop_.now() + options_.close_limit;
    await_peer();
    advance_shutdown();
}

void Session::confirm() {
    if (!awaits_confirmation()) return;
    shutdown_.confirm();
    advance_shutdown();
}

// The peer has made progress, or it is its turn now.
void Session::await_peer() {
    if (!shutdown_.awaits_peer()) return;
    deadline_.start_at(std::min(loop_.now() + options_.close_timeout, close_by_));
}

void Session::advance_shutdown() {
    while (const std::optional<FrameKind> kind = shutdown_.next()) {
        if (free_slots_.empty() || !credits_->can_send_frame()) return;
        std::array<std::byte, sizeof(std::uint32_t)> unread;
        wire::store(unread.data(), shutdown_.unread());
        const bool is_ack = *kind == FrameKind::shutdown_ack;
        if (!send_control(*kind, std::span{unread}.first(is_ack ? unread.size() : 0))) return;
        shutdown_.on_sent(*kind);
        await_peer();
    }
    // The last that was sent has left before the connection is closed.
    if (shutdown_.is_complete() && free_slots_.size() == slots_.size()) {
        fail(CloseReason::unconfirmed, {}); // which it is not: on_closed judges
    }
}

void Session::on_deadline() {
    switch (state_) {
    case State::opening:
        return fail(CloseReason::connect_timeout,
                    "no answer from " + peer_address() + " within " +
                        std::to_string(options_.connect_timeout.count()) + " ms");
    case State::awaiting_open:
        return fail(CloseReason::handshake_timeout,
                    peer_address() + " connected and sent no open frame");
    case State::open: {
        const bool limit = loop_.now() >= close_by_;
        const auto time = limit ? options_.close_limit : options_.close_timeout;
        return fail(CloseReason::unconfirmed, peer_address() +
                                                  (limit ? " has not taken everything within "
                                                         : " has taken nothing more for ") +
                                                  std::to_string(time.count()) + " ms");
    }
    case State::closing:
        return;
    }
}

void Session::abort() {
    fail(CloseReason::local, {});
}

void Session::fail(CloseReason reason, std::string detail) {
    if (state_ == State::closing) return;
    verdict_ = Closed{.reason = reason, .detail = std::move(detail)};
    state_ = State::closing;
    deadline_.cancel();
    heartbeat_.cancel();
    connection_->close();
}

void Session::explain_rejection(Closed& closed) const {
    if (rejection_.code == RejectCode::none) return;
    closed.detail += ": " + std::string{to_string(rejection_.code)};
    if (rejection_.required_bytes == 0) return;
    closed.detail += " (" + std::to_string(rejection_.required_bytes) + " bytes required";
    if (rejection_.code == RejectCode::receive_too_small) {
        closed.required_receive_bytes = rejection_.required_bytes;
        closed.detail += ", " + std::to_string(options_.receive_bytes) + " here";
    }
    closed.detail += ")";
}

void Session::on_closed(const Closed& closed) {
    Closed last =
        shutdown_.judge(verdict_ ? *verdict_ : closed, ledger_.sent(), ledger_.outstanding());
    if (last.reason == CloseReason::rejected) explain_rejection(last);
    state_ = State::closing;
    deadline_.cancel();
    heartbeat_.cancel();
    handler_.on_closed(*this, last); // may destroy the session
}

} // namespace netio::inline v0_2
