// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/send_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/messages/message_frames.hpp"

#include <algorithm>
#include <array>

namespace netio::inline v0_2 {

SendSocket::SendSocket(Transport& transport, Options options, Handler& handler)
    : transport_{transport}, options_{std::move(options)}, handler_{handler}, connector_{transport,
                                                                                         *this} {
    validate(options_.session);
}

SendSocket::~SendSocket() = default;

void SendSocket::connect(const Address& remote) {
    NETIO_CHECK_MSG(!session_ && !connector_.is_connecting(),
                    "the socket is connected or connecting");
    connector_.connect(remote, options_.local_host);
}

void SendSocket::on_route(const Route& route) {
    provider_ = route.provider;
    session_ = std::make_unique<Session>(transport_,
                                         Session::Target{.provider = route.provider,
                                                         .remote = route.remote,
                                                         .local_host = route.local_host,
                                                         .offer = route.offer},
                                         messages::hello(0), options_.session,
                                         static_cast<Session::Handler&>(*this));
}

void SendSocket::on_connect_failed(const Closed& closed) {
    handler_.on_closed(*this, closed);
}

void SendSocket::close() {
    if (session_) return session_->close();
    if (connector_.is_connecting()) connector_.close();
}

SendSocket::Counters SendSocket::counters() const noexcept {
    Counters counters = ended_;
    if (!session_) return counters;
    const SessionCounters now = session_->counters();
    counters.messages += now.frames_sent;
    counters.bytes += now.bytes_sent;
    counters.again += now.again;
    counters.gathered += now.gathered;
    return counters;
}

void SendSocket::abort() {
    if (session_) return session_->abort();
    if (connector_.is_connecting()) connector_.close();
}

Status SendSocket::send(const Slice& slice, Cookie cookie, std::optional<std::uint64_t> immediate) {
    return sendv({&slice, 1}, cookie, immediate);
}

Status SendSocket::sendv(std::span<const Slice> slices, Cookie cookie,
                         std::optional<std::uint64_t> immediate) {
    if (!session_) return Status::closed;
    std::array<std::byte, messages::immediate_bytes> extension;
    if (immediate) wire::store(extension.data(), *immediate);
    return session_->send(
        {.kind = messages::message_kind,
         .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
         .extension = std::span{extension}.first(immediate ? extension.size() : 0),
         .slices = slices},
        cookie);
}

Status SendSocket::send_inline(std::span<const std::byte> message,
                               std::optional<std::uint64_t> immediate) {
    if (message.size() > inline_limit) return Status::too_large;
    if (!session_) return Status::closed;
    std::array<std::byte, frame_extension_limit> body;
    if (immediate) wire::store(body.data(), *immediate);
    const std::size_t head = immediate ? messages::immediate_bytes : 0;
    std::ranges::copy(message, body.begin() + static_cast<std::ptrdiff_t>(head));
    return session_->send({.kind = messages::message_kind,
                           .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
                           .extension = std::span{body}.first(head + message.size()),
                           .slices = {}},
                          std::nullopt);
}

std::size_t SendSocket::message_limit() const noexcept {
    return is_connected() ? session_->body_limit() - messages::immediate_bytes : 0;
}

void SendSocket::on_open(Session&) {
    connector_.cancel();
    handler_.on_connected(*this);
}

void SendSocket::on_frame(Session& session, const IncomingFrame&) {
    session.fail(CloseReason::protocol_error, "a receive socket sends no messages");
}

void SendSocket::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    handler_.on_send_completed(*this, cookie, outcome);
}

void SendSocket::on_writable(Session&) {
    handler_.on_writable(*this);
}

bool SendSocket::is_connected() const noexcept {
    return session_ && session_->is_open();
}

void SendSocket::on_closed(Session&, const Closed& closed) {
    ended_ = counters();
    session_.reset();
    // What was closed here wants no other route.
    if (connector_.is_connecting()) {
        if (closed.reason != CloseReason::local) return connector_.try_next(closed);
        connector_.cancel();
    }
    handler_.on_closed(*this, closed);
}

} // namespace netio::inline v0_2
