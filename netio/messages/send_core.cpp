// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/send_core.hpp"

#include "netio/base/check.hpp"
#include "netio/messages/message_frames.hpp"

namespace netio::inline v0_2 {

SendCore::SendCore(SendSocket& socket, Transport& transport, SendSocket::Options options,
                   SendSocket::Handler& handler)
    : socket_{socket}, transport_{transport}, options_{std::move(options)}, handler_{handler},
      connector_{transport, *this} {
    validate(options_.session);
}

SendCore::~SendCore() = default;

void SendCore::connect(const Address& remote) {
    NETIO_CHECK_MSG(!session_ && !connector_.is_connecting(),
                    "the socket is connected or connecting");
    connector_.connect(remote, options_.local_host, options_.key);
}

void SendCore::on_route(const Session::Target& target) {
    provider_ = target.provider;
    session_ = std::make_unique<Session>(transport_, target, messages::hello(0), options_.session,
                                         static_cast<Session::Handler&>(*this));
}

void SendCore::on_connect_failed(const Closed& closed) {
    handler_.on_closed(socket_, closed);
}

void SendCore::close() {
    if (session_) return session_->close();
    if (connector_.is_connecting()) connector_.close();
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

void SendCore::abort() {
    if (session_) return session_->abort();
    if (connector_.is_connecting()) connector_.close();
}

void SendCore::on_open(Session&) {
    connector_.cancel();
    handler_.on_connected(socket_);
}

void SendCore::on_frame(Session& session, const IncomingFrame&) {
    session.fail(CloseReason::protocol_error, "a receive socket sends no messages");
}

void SendCore::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    handler_.on_send_completed(socket_, cookie, outcome);
}

void SendCore::on_writable(Session&) {
    handler_.on_writable(socket_);
}

void SendCore::on_closed(Session&, const Closed& closed) {
    ended_ = counters();
    session_.reset();
    // What was closed here wants no other route.
    if (connector_.is_connecting()) {
        if (closed.reason != CloseReason::local) return connector_.try_next(closed);
        connector_.cancel();
    }
    handler_.on_closed(socket_, closed);
}

} // namespace netio::inline v0_2
