// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/send_core.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/messages/message_frames.hpp"

#include <algorithm>
#include <utility>

namespace netio::inline v0_2 {

void validate(const SendSocket::Options& options) {
    validate(options.session);
    require_time("retry_interval", options.retry_interval);
    require_option(options.retry_limit <= longest_time, "retry_limit must be at most a year");
}

SendCore::SendCore(SendSocket& socket, Transport& transport, SendSocket::Options options,
                   SendSocket::Handler& handler)
    : socket_{socket}, transport_{transport}, options_{std::move(options)}, handler_{handler},
      connector_{transport, *this, options_.session.connect_timeout},
      back_off_{{.first = options_.retry_interval,
                 .limit = std::max(options_.retry_interval, options_.retry_limit),
                 .seed = transport.draw_number()}},
      outlook_{proof()}, retry_timer_{transport.loop(), [this] { retry(); }} {
    validate(options_);
}

SendCore::~SendCore() = default;

void SendCore::connect(const Address& remote) {
    NETIO_CHECK_MSG(!session_ && !connector_.is_connecting(),
                    "the socket is connected or connecting");
    retry_timer_.cancel();
    closing_ = false;
    remote_ = remote;
    outlook_ = Outlook{proof()};
    start();
}

void SendCore::start() {
    outlook_.begin_attempt();
    connector_.connect(remote_, options_.local_host, options_.key);
}

void SendCore::retry() {
    if (!closing_) return start();
    handler_.on_closed(
        socket_, {.reason = CloseReason::local, .detail = "closed before it was connected again"});
}

void SendCore::on_route(const Session::Target& target) {
    provider_ = target.provider;
    session_ = std::make_unique<Session>(transport_, target, messages::hello(0), options_.session,
                                         static_cast<Session::Handler&>(*this));
}

void SendCore::on_connect_failed(const Closed& closed) {
    conclude(closed, outlook_.may_change(closed));
}

void SendCore::conclude(const Closed& closed, bool may_change) {
    if (options_.reconnect && may_change && !closing_) {
        retry_timer_.start(back_off_.next());
    }
    handler_.on_closed(socket_, closed);
}

void SendCore::close() {
    closing_ = true;
    if (session_) return session_->close();
    if (connector_.is_connecting()) return connector_.close();
    if (retry_timer_.armed()) retry_timer_.start(Duration::zero());
}

SendSocket::Counters SendCore::counters() const noexcept {
    SendSocket::Counters counters = ended_;
    if (!session_) return counters;
    const SessionCounters now = session_->counters();
    counters.messages += now.frames_sent;
    counters.bytes += now.bytes_sent;
    counters.again += now.again;
    counters.gathered += now.gathered;
    return counters;
}

SendSnapshot SendCore::snapshot() const noexcept {
    const SendSocket::Counters sums = counters();
    SendSnapshot snapshot{.connected = is_connected(),
                          .messages = sums.messages,
                          .bytes = sums.bytes,
                          .frames = sums.messages,
                          .again = sums.again,
                          .connections = connections_,
                          .latency = times_.latency()};
    if (!session_) return snapshot;
    const SessionCounters now = session_->counters();
    snapshot.credits = now.credits;
    snapshot.unconfirmed = now.unconfirmed;
    return snapshot;
}

void SendCore::abort() {
    if (!session_) return close();
    closing_ = true;
    session_->abort();
}

void SendCore::on_open(Session&) {
    connector_.cancel();
    outlook_.on_let_in();
    ++connections_;
    opened_ = transport_.loop().now();
    handler_.on_connected(socket_);
}

void SendCore::on_frame(Session& session, const IncomingFrame&) {
    session.fail(CloseReason::protocol_error, "a receive socket sends no messages");
}

void SendCore::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    outcome == Completion::Outcome::done ? times_.on_sent(loop().now()) : times_.on_canceled();
    handler_.on_send_completed(socket_, cookie, outcome);
}

void SendCore::on_writable(Session&) {
    handler_.on_writable(socket_);
}

void SendCore::on_closed(Session& session, const Closed& closed) {
    outlook_.on_refused(refusal_of(session.rejection()));
    // Who has served us, or stood for a while, is asked again soon.
    const bool stood =
        !connector_.is_connecting() && transport_.loop().now() - opened_ >= options_.retry_limit;
    if (stood || session.has_heard()) back_off_.reset();
    ended_ = counters();
    session_.reset();
    if (!connector_.is_connecting()) return conclude(closed, true);
    // What was closed here wants no other route, though the attempt may have failed before.
    closing_ ? connector_.close() : connector_.try_next(closed);
}

} // namespace netio::inline v0_2
