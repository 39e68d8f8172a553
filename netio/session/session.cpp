// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/wire.hpp"
#include "netio/session/handshake.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace netio::inline v0_3 {
namespace {

// Time for the last frame to be sent.
constexpr std::chrono::milliseconds parting_limit{250};

// The connector reports failed attempts to connect.
void report_end(Observer& observer, const Connection& connection, const Handshake& handshake,
                const Closed& closed) {
    const std::string peer = connection.peer_address();
    if (handshake.is_complete()) {
        observer.on_peer_disconnected({.peer = peer, .closed = closed});
    } else if (handshake.is_accepting() && closed.reason != CloseReason::local) {
        observer.on_peer_rejected({.peer = peer, .why = closed.detail});
    }
}

AbortReason too_slow_for(Duration time) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    return {.why = AbortReason::too_slow,
            .value = static_cast<std::uint32_t>(
                std::clamp<decltype(count)>(count, 0, std::numeric_limits<std::uint32_t>::max()))};
}

} // namespace

void Session::Handler::on_written(Session& session, std::uint32_t) {
    session.fail(CloseReason::protocol_error, "this service takes no remote writes");
}

bool Session::Handler::on_shutdown(Session&) {
    return true;
}

Session::Session(Transport& transport, const Hello& hello, const SessionOptions& options,
                 Handler& handler, access::Protection protection)
    : use_{transport}, loop_{transport.loop()}, options_{(validate(options), options)},
      handler_{handler}, handshake_{hello, options}, send_{options.send_count,
                                                           transport.copy_budget()},
      receive_{options.receive_buffer_bytes + access::seal_bytes(protection), options,
               transport.window_budget()},
      liveness_{options.heartbeat, options.dead_after}, deadline_{loop_, [this] { on_deadline(); }},
      beat_{loop_, [this] { beat(); }}, later_{loop_, [this] { deliver_arrivals(); }} {}

Session::Session(Transport& transport, const Target& target, const Hello& hello,
                 const SessionOptions& options, Handler& handler)
    : Session{transport, hello, options, handler,
              target.auth ? target.auth->protection() : access::Protection::none} {
    handshake_.connects(target.required_receive_bytes, target.offered, target.auth);
    connection_ = transport.connect_over({.provider = target.provider,
                                          .remote = target.remote,
                                          .local_host = target.local_host,
                                          .offer = target.offer},
                                         {.send_count = options_.send_count,
                                          .receive_count = options_.receive_count,
                                          .remote_writes = options_.remote_writes,
                                          .checks_answer = target.auth != nullptr},
                                         *this);
    open_connection(options_.connect_timeout);
}

Session::Session(Transport& transport, ConnectionRequest& request, const Hello& peer,
                 const Hello& hello, const SessionOptions& options, Handler& handler,
                 std::unique_ptr<AdmittedPeer> admitted, access::PeerSlot slot)
    : Session{transport, hello, options, handler,
              admitted ? admitted->result().protection() : access::Protection::none} {
    handshake_.accepts(peer);
    if (admitted) {
        admitted->set_revocation([this] {
            fail(CloseReason::not_admitted,
                 "the key of " + connection_->peer_address() + " was removed or changed");
        });
    }
    // Before there is an endpoint, because a request that has one cannot be rejected with a reason.
    MemoryDomain& domain = request.domain();
    receive_.register_memory(domain);
    send_.register_memory(domain);
    connection_ = request.make_connection({.send_count = options_.send_count,
                                           .receive_count = options_.receive_count,
                                           .remote_writes = options_.remote_writes},
                                          *this);
    // Only now, so that a revocation finds a connection.
    handshake_.admit(std::move(admitted), std::move(slot));
    open_connection(options_.handshake_timeout);
    open_windows();
}

Session::~Session() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- opening --------------------------------------------------------------------------------

void Session::open_connection(std::chrono::milliseconds timeout) {
    for (std::uint32_t i = 0; i < receive_.receive_count(); ++i) {
        // If the connection is already broken, on_closed reports it.
        if (!receive_.post(*connection_, i)) break;
    }
    deadline_.start(timeout);
    ConnectionData data;
    const std::size_t size = handshake_.put_hello(data);
    connection_->open(std::span{data}.first(size));
}

// Called once the peer is known and, with keys, authenticated.
void Session::open_windows() {
    const Hello& peer = handshake_.peer();
    const Capabilities& can = connection_->capabilities();
    const access::Protection protection = handshake_.protection();
    const std::size_t behind = access::seal_bytes(protection);
    send_.open(
        {.receive_count = options_.receive_count,
         .peer_receive_count = peer.receive_count,
         .frame_bytes =
             std::min<std::size_t>(peer.receive_buffer_bytes, can.message_bytes - behind),
         .segment_limit = can.segment_limit,
         .by_immediate = !options_.never_immediate && can.immediate_bytes >= sizeof(std::uint32_t),
         .two_way = is_two_way()});
    if (protection != access::Protection::peers) return; // no seals, or the keys follow
    const bool accepting = handshake_.is_accepting();
    const access::AuthKeys& keys = *handshake_.keys();
    send_.seal_with(access::FrameSealer{access::Tagger{accepting ? keys.tags_down : keys.tags_up}});
    receive_.open_with(
        access::FrameOpener{access::TagChecker{accepting ? keys.tags_up : keys.tags_down}});
}

// Checks an answer once, because the proof of the request is used up then.
bool Session::is_answer_genuine(std::span<const std::byte> data) {
    if (std::exchange(is_answered_, true)) return true; // otherwise the session would have failed
    const Closed problem = handshake_.take_answer(data);
    if (problem.detail.empty()) return true;
    fail(problem.reason, connection_->peer_address() + " " + problem.detail);
    return false;
}

void Session::on_answer(std::span<const std::byte> data) {
    static_cast<void>(is_answer_genuine(data));
}

void Session::on_connected(std::span<const std::byte> data) {
    if (state_ != State::opening) return;
    liveness_.on_received(loop_.now(), loop_.stalled());
    if (handshake_.is_accepting()) { // the deadline continues
        state_ = handshake_.exchange(options_.rekey_after_bytes) ? State::exchanging
                                                                 : State::awaiting_open;
        return;
    }
    if (!is_answer_genuine(data)) return;
    open_windows();
    access::KeyExchange* const exchange = handshake_.exchange(options_.rekey_after_bytes);
    if (exchange == nullptr) return static_cast<void>(say_open());
    state_ = State::exchanging;
    deadline_.start(options_.handshake_timeout);
    static_cast<void>(send_own(FrameKind::key_exchange, exchange->say()));
}

// Takes the peer's part of the session keys. The accepting side answers with its own.
bool Session::take_keys(std::span<const std::byte> message) {
    access::KeyExchange& exchange = *handshake_.exchange(options_.rekey_after_bytes);
    const bool is_genuine = exchange.hear(message);
    if (is_genuine && handshake_.is_accepting() &&
        !send_own(FrameKind::key_exchange, exchange.say())) {
        return false;
    }
    if (!is_genuine || !exchange.is_complete()) {
        fail(CloseReason::not_admitted,
             connection_->peer_address() +
                 " has not proved in the exchange of keys that it is the authenticated peer; "
                 "a message may have been modified in transit");
        return false;
    }
    send_.seal_with(exchange.sealer());
    receive_.open_with(exchange.opener());
    handshake_.forget_exchange();
    if (!handshake_.is_accepting()) return say_open();
    state_ = State::awaiting_open;
    return true;
}

bool Session::say_open() {
    OpenOptionsBytes offered;
    const std::size_t size = encode(handshake_.offered(), offered);
    if (!send_own(FrameKind::open, std::span{offered}.first(size))) return false;
    const DestructionWatch watch{destroyed_};
    become_open();
    return !watch.destroyed() && state_ == State::open;
}

void Session::become_open() {
    deadline_.cancel();
    state_ = State::open;
    handshake_.complete();
    liveness_.expect(std::chrono::milliseconds{handshake_.peer().heartbeat_ms});
    if (const auto interval = liveness_.interval()) beat_.start(*interval);
    if (Observer* const observer = loop_.observer) {
        observer->on_peer_connected({.peer = connection_->peer_address(),
                                     .provider = connection_->capabilities().provider});
    }
    handler_.on_open(*this); // may destroy the session
}

void Session::on_rejected(std::span<const std::byte> data) {
    handshake_.take_rejection(data);
}

// --- sending --------------------------------------------------------------------------------

// Memory is registered at its first use, which can fail, for example because of the limit of locked
// memory. The session cannot continue without the frame.
template <class Post>
Status Session::post_or_fail(Post post) {
    try {
        const Status status = post();
        if (status != Status::ok) return status;
        liveness_.on_sent();
        receive_.autotuner().on_granted(send_.flow().granted(), loop_.turns().rested());
        return status;
    } catch (const FabricError& error) {
        fail(CloseReason::failed, error.what());
        return Status::closed;
    }
}

Status Session::send(const OutgoingFrame& frame, std::optional<Cookie> cookie) {
    NETIO_CHECK(frame.extension.size() <= frame_extension_limit);
    NETIO_CHECK(frame.kind >= first_service_kind);
    if (!is_open()) return Status::closed;
    return post_or_fail([&] { return send_.send(*connection_, frame, cookie); });
}

Status Session::write(const OutgoingWrite& write, Cookie cookie) {
    NETIO_CHECK_MSG(!access::seals_all(handshake_.protection()),
                    "what is written cannot be sealed: it goes in frames");
    if (!is_open()) return Status::closed;
    return post_or_fail([&] { return send_.write(*connection_, write, cookie); });
}

bool Session::has_capacity() const noexcept {
    return is_open() && send_.can_send();
}

bool Session::request_capacity() {
    return send_.request_send() && is_open();
}

bool Session::request_write_capacity() {
    return send_.request_write() && is_open();
}

// The caller ensures a free slot and a credit.
bool Session::send_own(FrameKind kind, std::span<const std::byte> body) {
    return post_or_fail([&] { return send_.send_own(*connection_, kind, body); }) == Status::ok;
}

void Session::go_on() {
    if (state_ != State::open) return;
    // Grows only if the peer can be notified at once; a smaller window is not urgent.
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
    if (is_open() && send_.take_writable_request())
        handler_.on_writable(*this); // may destroy the session
}

// --- timers ---------------------------------------------------------------------------------

void Session::beat() {
    const Liveness::Look look{
        .now = loop_.now(), .caught_up = loop_.caught_up(), .stalled = loop_.stalled()};
    const Duration interval = liveness_.interval().value_or(Duration{0});
    if (liveness_.is_suspect(look)) {
        const TimePoint sign = connection_->last_sign_of_life(interval);
        if (liveness_.is_dead(look, sign, send_.flow().can_peer_send())) {
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

void Session::on_deadline() {
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
            return fail(CloseReason::unconfirmed, peer + " has not received everything within " +
                                                      milliseconds(options_.close_limit));
        }
        return abort_with({.reason = CloseReason::unconfirmed,
                           .detail = peer + " has received nothing more for " +
                                     milliseconds(options_.close_timeout)},
                          too_slow_for(options_.close_timeout));
    case State::parting:
        return fail(verdict_->reason, {});
    case State::closing:
    case State::ended:
        return;
    }
}

// --- the end --------------------------------------------------------------------------------

void Session::close(TimePoint by) {
    if (state_ == State::closing || state_ == State::ended) return;
    if (state_ != State::open) return fail(CloseReason::local, {}); // nothing was sent
    if (!shutdown_.close(std::min(by, attended(loop_) + options_.close_limit))) return;
    receive_.lift_keep_limit();
    await_peer();
    advance_shutdown();
}

// Starts the deadline, because the peer has to act or has made progress.
void Session::await_peer() {
    if (state_ != State::open) return;
    const bool limited = shutdown_.limit() != TimePoint::max(); // otherwise the peer closes
    const TimePoint limit = limited ? shutdown_.limit() + loop_.stalled() : TimePoint::max();
    if (shutdown_.awaits_peer()) {
        deadline_.start_at(std::min(loop_.now() + options_.close_timeout, limit));
    } else if (limited) {
        deadline_.start_at(limit);
    }
}

void Session::advance_shutdown() {
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
    // The last frame must be sent before the connection is closed.
    if (shutdown_.is_complete() && send_.is_idle()) {
        fail(CloseReason::unconfirmed, {}); // Shutdown::judge() finds that it is orderly
    }
}

// Notifies the peer only if no frame is in flight: a peer that does not receive those would not
// receive another one either, and their memory is needed.
void Session::abort_with(Closed verdict, const AbortReason& reason) {
    if (state_ == State::parting) return;
    // The accepting side sends nothing before the first frame of the peer (required by iWARP).
    const bool may_send =
        state_ == State::open || (state_ == State::awaiting_open && has_received());
    const bool may_tell = may_send && send_.is_idle() && !shutdown_.is_silent();
    if (!may_tell) return fail(verdict.reason, std::move(verdict.detail));
    const auto body = encode(reason);
    const Status told =
        post_or_fail([&] { return send_.send_last(*connection_, FrameKind::shutdown, body); });
    if (told != Status::ok) return fail(verdict.reason, std::move(verdict.detail));
    verdict_ = std::move(verdict);
    state_ = State::parting;
    beat_.cancel();
    deadline_.start(parting_limit);
}

void Session::abort() {
    fail(CloseReason::local, {});
}

void Session::cut_off(CloseReason reason, std::string detail, Duration took_nothing_for) {
    abort_with({.reason = reason, .detail = std::move(detail)}, too_slow_for(took_nothing_for));
}

void Session::fail(CloseReason reason, std::string detail) {
    if (state_ == State::closing) return;
    const bool by_peer = reason == CloseReason::silent || reason == CloseReason::unconfirmed;
    if (!by_peer) receive_.clear(); // the user does not want the arrivals any more
    if (state_ == State::ended) return later_.start({});
    if (state_ != State::parting) {
        verdict_ = Closed{.reason = reason, .detail = std::move(detail)};
    }
    state_ = State::closing;
    deadline_.cancel();
    beat_.cancel();
    connection_->close();
}

void Session::add_unread(std::uint32_t count) noexcept {
    shutdown_.add_unread(count);
}

bool Session::awaits_confirmation() const noexcept {
    return state_ == State::open && shutdown_.awaits_user();
}

void Session::confirm() {
    if (!awaits_confirmation()) return;
    shutdown_.confirm();
    advance_shutdown();
}

void Session::on_closed(const Closed& closed) {
    if (!verdict_) verdict_ = closed;
    state_ = State::ended;
    deadline_.cancel();
    beat_.cancel();
    deliver_arrivals(); // may destroy the session
}

// --- arrivals -------------------------------------------------------------------------------

void Session::on_completion(const Completion& completion) {
    const bool is_send =
        completion.kind == Completion::Kind::send || completion.kind == Completion::Kind::write;
    if (is_send) {
        const SendWindow::Released sent = send_.release(completion.cookie);
        const DestructionWatch watch{destroyed_};
        if (sent.cookie) handler_.on_sent(*this, *sent.cookie, completion.outcome);
        if (watch.destroyed()) return;
        if (state_ == State::parting && send_.is_idle()) return fail(verdict_->reason, {});
        if (!sent.own) await_peer(); // a heartbeat is no progress
        return go_on();
    }
    if (completion.outcome != Completion::Outcome::done) return;
    if (state_ >= State::parting) return;
    if (take_arrival(completion)) deliver_arrivals();
}

bool Session::refuse_open(std::uint16_t option) {
    abort_with({.reason = CloseReason::protocol_error,
                .detail = connection_->peer_address() + " requires option " +
                          std::to_string(option) + " of the connection, which is not served here"},
               {.why = AbortReason::unknown_option, .value = option});
    return false;
}

bool Session::protocol_error(const std::string& what) {
    fail(CloseReason::protocol_error, connection_->peer_address() + " " + what);
    return false;
}

bool Session::take_arrival(const Completion& completion) {
    if (!send_.is_open()) return protocol_error("sent before it had accepted");
    liveness_.on_received(loop_.now(), loop_.stalled());
    ReceiveWindow::Arrival arrival;
    std::uint32_t credits = 0;
    bool waited = false;
    const bool is_write = completion.kind == Completion::Kind::remote_write;
    if (is_write && access::seals_all(handshake_.protection())) {
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
        // Checked first, because an unsealed header proves nothing, not even the order.
        if (!receive_.open(bytes)) {
            return protocol_error("sent a frame of kind " + std::to_string(header.kind) +
                                  " whose tag is wrong; a frame was modified, removed, repeated or "
                                  "reordered in transit");
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
    // This header is not authenticated yet.
    if (is_exchange && credits > 0) return protocol_error("returns credits before it may");
    const CreditError error = send_.on_received(credits);
    if (error == CreditError::overrun) {
        return protocol_error("granted more credits than it has receives");
    }
    if (error == CreditError::unpermitted) return protocol_error("sent without a credit");
    receive_.autotuner().on_arrived(waited, loop_.turns().rested(), loop_.now());
    if (credits > 0) await_peer();
    if (shutdown_.peer_is_silent()) return protocol_error("sent after it had confirmed the end");
    if (!is_write && arrival.kind < first_service_kind && !take_own_frame(arrival)) return false;
    // A user that has paused may still send. The peer needs this receive to return credits for
    // that.
    if (receive_.is_paused() && is_two_way() && is_done_with(arrival))
        return reuse(*arrival.receive);
    receive_.push(arrival);
    return true;
}

// Both users send messages, and either may pause.
bool Session::is_two_way() const noexcept {
    return (handshake_.peer().features & two_way_feature) != 0;
}

// A frame of the session of which nothing is left to deliver.
bool Session::is_done_with(const ReceiveWindow::Arrival& arrival) noexcept {
    return arrival.kind < first_service_kind &&
           arrival.kind != static_cast<std::uint8_t>(FrameKind::written) &&
           arrival.kind != static_cast<std::uint8_t>(FrameKind::shutdown);
}

// Processes frames of the session itself that need not wait for earlier arrivals.
bool Session::take_own_frame(ReceiveWindow::Arrival& arrival) {
    const std::span<const std::byte> body = arrival.body;
    const auto unexpected = [&] {
        return protocol_error("sent an unexpected frame of kind " + std::to_string(arrival.kind));
    };
    if (arrival.flags != 0) return unexpected();
    switch (static_cast<FrameKind>(arrival.kind)) {
    case FrameKind::open: {
        if (state_ != State::awaiting_open)
            return protocol_error("sent its open frame out of turn");
        const std::optional<std::uint16_t> refused = handshake_.take_open(body);
        if (!refused) return protocol_error("sent a malformed open frame");
        if (*refused != 0) return refuse_open(*refused);
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
        return body.empty() || decode_abort_reason(body) || unexpected();
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
            return protocol_error("announces " + std::to_string(count) +
                                  " receives, which is impossible");
        }
        return true;
    }
    }
    return unexpected();
}

// --- delivering -----------------------------------------------------------------------------

void Session::deliver_arrivals() {
    const DestructionWatch watch{destroyed_};
    for (bool first = true; state_ != State::closing && receive_.has_work(); first = false) {
        // After a pause, as many arrivals as there are receives may be waiting.
        if (!first && loop_.time_is_up()) {
            later_.start({});
            break;
        }
        const ReceiveWindow::Arrival arrival = receive_.front();
        is_delivering_ = true;
        deliver(arrival);
        if (watch.destroyed()) return;
        is_delivering_ = false;
        if (receive_.is_empty()) break; // the service has ended the session
        if (receive_.take_rest()) continue;
        receive_.pop();
        if (state_ >= State::parting) continue;
        if (arrival.receive) {
            if (!reuse(*arrival.receive)) return; // on_closed follows
        } else {
            // A write without a receive counted against the completion queue only.
            send_.flow().on_reposted();
        }
    }
    if (state_ != State::ended || !receive_.is_empty()) return go_on();
    Closed last = shutdown_.judge(*verdict_, send_.unacked().sent(), send_.unacked().outstanding());
    if (last.reason == CloseReason::rejected) handshake_.explain(last);
    later_.cancel();
    if (loop_.observer != nullptr) report_end(*loop_.observer, *connection_, handshake_, last);
    handler_.on_closed(*this, last); // may destroy the session
}

void Session::deliver(const ReceiveWindow::Arrival& arrival) {
    if (arrival.kind >= first_service_kind ||
        arrival.kind == static_cast<std::uint8_t>(FrameKind::written)) {
        if (!shutdown_.peer_may_send()) {
            protocol_error("sent after its shutdown");
        } else if (arrival.kind >= first_service_kind) {
            handler_.on_frame(*this, {.kind = arrival.kind,
                                      .flags = arrival.flags,
                                      .body = arrival.body,
                                      .continued = arrival.continued});
        } else {
            handler_.on_written(*this, arrival.notice);
        }
        return;
    }
    if (arrival.kind != static_cast<std::uint8_t>(FrameKind::shutdown)) return;
    if (!arrival.body.empty()) { // the peer aborts
        const Closed why =
            closed_by(*decode_abort_reason(arrival.body), connection_->peer_address());
        if (state_ == State::ended) verdict_ = why;
        return fail(why.reason, why.detail);
    }
    if (!shutdown_.on_shutdown()) {
        protocol_error("shut down twice");
        return;
    }
    await_peer();
    const DestructionWatch watch{destroyed_};
    const bool done = handler_.on_shutdown(*this);
    if (!watch.destroyed() && done && shutdown_.awaits_user()) shutdown_.confirm();
}

// A receive has been processed. Returns false if the connection has broken.
bool Session::reuse(std::uint32_t index) {
    if (!receive_.is_posted_again(index)) {
        receive_.retire(index);
        send_.flow().on_retired();
        return true;
    }
    const bool is_supplied = receive_.supply(index, connection_->domain());
    send_.flow().on_missing(receive_.starved_count());
    if (!is_supplied) return true; // no credit for the peer
    if (!receive_.post(*connection_, index)) return false;
    send_.flow().on_reposted();
    // The receive may have got its own buffer back, and another one can use its spare.
    const std::optional<std::uint32_t> next = receive_.take_one_starved();
    return !next || reuse(*next);
}

KeptBytes Session::keep(std::span<const std::byte> bytes) {
    check_keep();
    return with_wake().keep(bytes, loop_.now());
}

KeptBytes Session::keep(std::vector<std::byte> message) {
    check_keep();
    return with_wake().keep(std::move(message), loop_.now());
}

void Session::check_keep() const noexcept {
    if (!is_delivering_)
        detail::misused(
            "keep() is for the message that a handler is given, while the handler runs");
}

ReceiveWindow& Session::with_wake() {
    if (self_) return receive_;
    auto self = std::make_shared<Session*>(this);
    receive_.wake_on_return([&loop = loop_, weak = std::weak_ptr{self}] {
        loop.post_always([weak] {
            if (const auto session = weak.lock()) (*session)->on_memory_returned();
        });
    });
    self_ = std::move(self);
    return receive_;
}

void Session::on_memory_returned() {
    if (state_ >= State::parting) return;
    for (const std::uint32_t index : receive_.take_starved())
        if (!reuse(index)) return;
    send_.flow().on_missing(receive_.starved_count());
    go_on();
}

void Session::pause() {
    receive_.pause();
}

void Session::put_back(std::span<const std::byte> rest) {
    NETIO_CHECK_MSG(receive_.is_paused(), "only a paused session delivers a frame in parts");
    receive_.put_back(rest);
}

void Session::resume() {
    if (receive_.resume() && receive_.has_work()) later_.start({});
}

SessionCounters Session::counters() const noexcept {
    SessionCounters counters = send_.counters();
    counters.frames_received = receive_.frames();
    counters.bytes_received = receive_.bytes();
    counters.receives = receive_.receive_count();
    return counters;
}

} // namespace netio::inline v0_3
