// SPDX-License-Identifier: Apache-2.0

// The life of a session: opening it, sending, its own timers, the end. What arrives is taken in
// session_arrivals.cpp.

#include "netio/session/session_core.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/session/cut_off.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace netio::inline v0_2 {
namespace {

// For the last frame to leave.
constexpr std::chrono::milliseconds parting_limit{250};

// The peer is known, and where there are keys, that it has the right one.
void open_windows(const Handshake& handshake, const SessionOptions& options,
                  const Capabilities& can, SendWindow& sending, ReceiveWindow& receiving) {
    const GatePassage& gate = handshake.gate();
    const Hello& peer = handshake.peer();
    const std::size_t behind = seal_bytes(gate.protection());
    sending.open(
        {.receive_count = options.receive_count,
         .peer_receive_count = peer.receive_count,
         .frame_bytes = std::min<std::size_t>(peer.receive_bytes, can.message_bytes - behind),
         .segment_limit = can.segment_limit,
         .by_immediate = !options.never_immediate && can.immediate_bytes >= sizeof(std::uint32_t)});
    if (gate.protection() != access::Protection::peers) return; // none, or keys are still to come
    const bool accepting = handshake.is_accepting();
    const access::GateKeys& keys = *gate.keys();
    sending.seal_with(FrameSealer{access::Tagger{accepting ? keys.tags_down : keys.tags_up}});
    receiving.open_with(FrameOpener{access::TagChecker{accepting ? keys.tags_up : keys.tags_down}});
}

} // namespace

SessionCore::SessionCore(Session& session, Transport& transport, const Hello& hello,
                         const SessionOptions& options, Session::Handler& handler,
                         access::Protection protection)
    : loop_{transport.loop()}, options_{(validate(options), options)}, session_{session},
      handler_{handler}, handshake_{hello, options}, send_{options.send_count,
                                                           transport.copy_budget()},
      receive_{options.receive_bytes + seal_bytes(protection), options, transport.window_budget()},
      liveness_{options.heartbeat, options.dead_after}, deadline_{loop_, [this] { on_deadline(); }},
      beat_{loop_, [this] { beat(); }}, later_{loop_, [this] { hand_over(); }} {}

SessionCore::~SessionCore() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- opening --------------------------------------------------------------------------------

void SessionCore::connect(Transport& transport, const Session::Target& target) {
    handshake_.connects(target.required_receive_bytes, target.offered);
    handshake_.gate().connects(target.gate);
    connection_ = transport.connect_over({.provider = target.provider,
                                          .remote = target.remote,
                                          .local_host = target.local_host,
                                          .offer = target.offer},
                                         {.send_count = options_.send_count,
                                          .receive_count = options_.receive_count,
                                          .remote_writes = options_.remote_writes,
                                          .checks_answer = target.gate != nullptr},
                                         *this);
    open_connection(options_.connect_timeout);
}

void SessionCore::accept(ConnectionRequest& request, const Hello& peer,
                         std::unique_ptr<Admittance> admittance,
                         std::shared_ptr<const void> place) {
    handshake_.accepts(peer);
    if (admittance) {
        admittance->set_revocation([this] {
            fail(CloseReason::not_admitted,
                 "the key of " + connection_->peer_address() + " is no longer what it was");
        });
    }
    // Before there is an endpoint: a request that has one cannot be rejected with a reason.
    MemoryDomain& domain = request.domain();
    receive_.register_memory(domain);
    send_.register_memory(domain);
    connection_ = request.make_connection({.send_count = options_.send_count,
                                           .receive_count = options_.receive_count,
                                           .remote_writes = options_.remote_writes},
                                          *this);
    // From here on: where there is a connection, and this is the session that has it.
    handshake_.gate().accepts(std::move(admittance), std::move(place));
    open_connection(options_.handshake_timeout);
    open_windows(handshake_, options_, connection_->capabilities(), send_, receive_);
}

void SessionCore::open_connection(std::chrono::milliseconds timeout) {
    for (std::uint32_t i = 0; i < receive_.receive_count(); ++i) {
        // A connection that broke already says so through on_closed.
        if (!receive_.post(*connection_, i)) break;
    }
    deadline_.start(timeout);
    ConnectionData data;
    const std::size_t size = handshake_.put_hello(data);
    connection_->open(std::span{data}.first(size));
}

// Once: the gate's second look at an answer would find that it had not asked for it.
bool SessionCore::is_answer_genuine(std::span<const std::byte> data) {
    if (std::exchange(is_answered_, true)) return true; // or it would not have connected
    const Closed problem = handshake_.take_answer(data);
    if (problem.detail.empty()) return true;
    fail(problem.reason, connection_->peer_address() + " " + problem.detail);
    return false;
}

void SessionCore::on_answer(std::span<const std::byte> data) {
    static_cast<void>(is_answer_genuine(data));
}

void SessionCore::on_connected(std::span<const std::byte> data) {
    if (state_ != State::opening) return;
    liveness_.on_received(loop_.now(), loop_.stalled());
    if (handshake_.is_accepting()) { // the deadline goes on
        state_ = handshake_.exchange(options_.key_bytes) ? State::exchanging : State::awaiting_open;
        return;
    }
    if (!is_answer_genuine(data)) return;
    open_windows(handshake_, options_, connection_->capabilities(), send_, receive_);
    KeyExchange* const exchange = handshake_.exchange(options_.key_bytes);
    if (exchange == nullptr) return static_cast<void>(say_open());
    state_ = State::exchanging;
    deadline_.start(options_.handshake_timeout);
    static_cast<void>(send_own(FrameKind::key_exchange, exchange->say()));
}

// The peer's part. Whoever accepts answers with its own.
bool SessionCore::take_keys(std::span<const std::byte> message) {
    KeyExchange& exchange = *handshake_.exchange(options_.key_bytes);
    const bool is_genuine = exchange.hear(message);
    if (is_genuine && handshake_.is_accepting() &&
        !send_own(FrameKind::key_exchange, exchange.say())) {
        return false;
    }
    if (!is_genuine || !exchange.is_complete()) {
        fail(CloseReason::not_admitted,
             connection_->peer_address() +
                 " has not shown in the exchange of keys that it is who came through the gate; "
                 "somebody stands between, or has changed a message");
        return false;
    }
    send_.seal_with(exchange.sealer());
    receive_.open_with(exchange.opener());
    handshake_.forget_exchange();
    if (!handshake_.is_accepting()) return say_open();
    state_ = State::awaiting_open;
    return true;
}

bool SessionCore::say_open() {
    OpenOptionsBytes offered;
    const std::size_t size = encode(handshake_.offered(), offered);
    if (!send_own(FrameKind::open, std::span{offered}.first(size))) return false;
    const DestructionWatch watch{destroyed_};
    become_open();
    return !watch.destroyed() && state_ == State::open;
}

void SessionCore::become_open() {
    deadline_.cancel();
    state_ = State::open;
    handshake_.complete();
    liveness_.expect(std::chrono::milliseconds{handshake_.peer().heartbeat_ms});
    if (const auto interval = liveness_.interval()) beat_.start(*interval);
    if (Observer* const observer = loop_.observer) {
        observer->on_peer_connected({.peer = connection_->peer_address(),
                                     .provider = connection_->capabilities().provider});
    }
    handler_.on_open(session_); // may destroy the session
}

void SessionCore::on_rejected(std::span<const std::byte> data) {
    handshake_.take_rejection(data);
}

// --- sending --------------------------------------------------------------------------------

// Memory is registered when it is first used, and that can fail: for want of memory that may be
// locked, say. The session cannot go on without what was to be sent.
template <class Post>
Status SessionCore::post_or_fail(Post post) {
    try {
        const Status status = post();
        if (status != Status::ok) return status;
        liveness_.on_sent();
        receive_.pace().on_granted(send_.flow().granted(), loop_.turns().rested());
        return status;
    } catch (const FabricError& error) {
        fail(CloseReason::failed, error.what());
        return Status::closed;
    }
}

Status SessionCore::send(const OutgoingFrame& frame, std::optional<Cookie> cookie) {
    NETIO_CHECK(frame.extension.size() <= frame_extension_limit);
    NETIO_CHECK(frame.kind >= first_service_kind);
    if (!is_open()) return Status::closed;
    return post_or_fail([&] { return send_.send(*connection_, frame, cookie); });
}

Status SessionCore::write(const OutgoingWrite& write, Cookie cookie) {
    NETIO_CHECK_MSG(!seals_all(handshake_.gate().protection()),
                    "what is written cannot be sealed: it goes in frames");
    if (!is_open()) return Status::closed;
    return post_or_fail([&] { return send_.write(*connection_, write, cookie); });
}

// The caller has made sure of a slot and a credit.
bool SessionCore::send_own(FrameKind kind, std::span<const std::byte> body) {
    return post_or_fail([&] { return send_.send_own(*connection_, kind, body); }) == Status::ok;
}

void SessionCore::go_on() {
    if (state_ != State::open) return;
    // It grows only where the peer can be told at once; that it has shrunk has time.
    const bool may_tell = send_.can_send_own() && !shutdown_.is_silent();
    if (receive_.is_to_grow() && may_tell && is_open()) {
        send_.flow().grow(receive_.grow(*connection_));
    }
    if (const auto count = may_tell ? receive_.take_news() : std::nullopt) {
        std::array<std::byte, sizeof *count> body;
        wire::store(body.data(), *count);
        if (!send_own(FrameKind::window, body)) return;
    }
    while (send_.must_send_credit() && !shutdown_.is_silent()) {
        if (!send_own(FrameKind::credit)) return;
    }
    advance_shutdown();
    if (is_open() && send_.take_wish()) handler_.on_writable(session_); // may destroy the session
}

// --- its own times --------------------------------------------------------------------------

void SessionCore::beat() {
    const Liveness::Look look{
        .now = loop_.now(), .caught_up = loop_.caught_up(), .stalled = loop_.stalled()};
    const Duration interval = liveness_.interval().value_or(Duration{0});
    if (liveness_.is_doubtful(look)) {
        const TimePoint sign = connection_->last_sign_of_life(interval);
        if (liveness_.is_dead(look, sign, !receive_.is_full())) {
            return fail(CloseReason::silent,
                        "no sign of life from " + connection_->peer_address() + " for more than " +
                            std::to_string(options_.dead_after.count()) + " ms");
        }
    }
    const bool due = liveness_.must_beat(look);
    if (due && send_.can_send() && !shutdown_.is_silent()) {
        if (!send_own(FrameKind::heartbeat)) return;
        while (send_.must_send_credit())
            if (!send_own(FrameKind::credit)) return;
        static_cast<void>(liveness_.must_beat(look)); // the heartbeat itself does not count
    }
    beat_.start(interval);
}

void SessionCore::on_deadline() {
    const auto milliseconds = [](std::chrono::milliseconds time) {
        return std::to_string(time.count()) + " ms";
    };
    const std::string peer = connection_->peer_address();
    switch (state_) {
    case State::opening:
        return fail(CloseReason::connect_timeout,
                    "no answer from " + peer + " within " + milliseconds(options_.connect_timeout));
    case State::exchanging:
        return fail(CloseReason::handshake_timeout,
                    peer + " has sent no part of the session's keys within " +
                        milliseconds(options_.handshake_timeout));
    case State::awaiting_open:
        return fail(CloseReason::handshake_timeout, peer + " connected and sent no open frame");
    case State::open:
        if (attended(loop_) >= shutdown_.limit()) {
            return fail(CloseReason::unconfirmed, peer + " has not taken everything within " +
                                                      milliseconds(options_.close_limit));
        }
        return cut_off({.reason = CloseReason::unconfirmed,
                        .detail = peer + " has taken nothing more for " +
                                  milliseconds(options_.close_timeout)},
                       options_.close_timeout);
    case State::parting:
        return fail(verdict_->reason, {});
    case State::closing:
    case State::ended:
        return;
    }
}

// --- the end --------------------------------------------------------------------------------

void SessionCore::close(TimePoint by) {
    if (state_ == State::closing || state_ == State::ended) return;
    if (state_ != State::open) return fail(CloseReason::local, {}); // nothing was sent
    if (!shutdown_.close(std::min(by, attended(loop_) + options_.close_limit))) return;
    await_peer();
    advance_shutdown();
}

// It is the peer's turn, or it has made progress.
void SessionCore::await_peer() {
    if (state_ != State::open) return;
    const bool limited = shutdown_.limit() != TimePoint::max(); // else the peer closes, not we
    const TimePoint limit = limited ? shutdown_.limit() + loop_.stalled() : TimePoint::max();
    if (shutdown_.awaits_peer()) {
        deadline_.start_at(std::min(loop_.now() + options_.close_timeout, limit));
    } else if (limited) {
        deadline_.start_at(limit);
    }
}

void SessionCore::advance_shutdown() {
    if (state_ != State::open) return;
    while (const std::optional<FrameKind> kind = shutdown_.next()) {
        if (!send_.can_send_own()) return;
        std::array<std::byte, sizeof(std::uint32_t)> unread;
        wire::store(unread.data(), shutdown_.unread());
        const bool is_ack = *kind == FrameKind::shutdown_ack;
        if (!send_own(*kind, std::span{unread}.first(is_ack ? unread.size() : 0))) return;
        shutdown_.on_sent(*kind);
        await_peer();
    }
    // The last that was sent has left before the connection is closed.
    if (shutdown_.is_complete() && send_.is_idle()) {
        fail(CloseReason::unconfirmed, {}); // which it is not: tell_end() judges
    }
}

// A peer that does not take what is in the fabric's hands would not take a frame behind it either,
// and that memory is wanted back: it is told only if there is nothing.
void SessionCore::cut_off(Closed verdict, Duration took_nothing_for) {
    if (state_ == State::parting) return;
    const bool may_tell = state_ == State::open && send_.is_idle() && !shutdown_.is_silent();
    if (!may_tell) return fail(verdict.reason, std::move(verdict.detail));
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(took_nothing_for).count();
    const auto body = encode(CutOff{.why = CutOff::too_slow,
                                    .milliseconds = static_cast<std::uint32_t>(
                                        std::clamp<decltype(time)>(time, 0, UINT32_MAX))});
    const Status told =
        post_or_fail([&] { return send_.send_last(*connection_, FrameKind::shutdown, body); });
    if (told != Status::ok) return fail(verdict.reason, std::move(verdict.detail));
    verdict_ = std::move(verdict);
    state_ = State::parting;
    beat_.cancel();
    deadline_.start(parting_limit);
}

void SessionCore::fail(CloseReason reason, std::string detail) {
    if (state_ == State::closing) return;
    const bool by_peer = reason == CloseReason::silent || reason == CloseReason::unconfirmed;
    if (!by_peer) receive_.clear(); // nobody wants it any more
    if (state_ == State::ended) return later_.start({});
    if (state_ != State::parting) {
        verdict_ = Closed{.reason = reason, .detail = std::move(detail)};
    }
    state_ = State::closing;
    deadline_.cancel();
    beat_.cancel();
    connection_->close();
}

void SessionCore::on_closed(const Closed& closed) {
    if (!verdict_) verdict_ = closed;
    state_ = State::ended;
    deadline_.cancel();
    beat_.cancel();
    hand_over(); // may destroy the session
}

} // namespace netio::inline v0_2
