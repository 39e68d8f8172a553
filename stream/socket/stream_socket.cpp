// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_socket.hpp"

#include "stream/socket/conversation.hpp"
#include "stream/socket/frames.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace netio::stream::inline v0_2 {

StreamSocket::Options published_stream(std::uint64_t ring_bytes) {
    return {.sender = published_sender(0), .receiver = published_receiver(ring_bytes)};
}

void validate(const StreamSocket::Options& options) {
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

StreamSocket::StreamSocket(Transport& transport, Options options, Handler& handler)
    : transport_{transport}, options_{(validate(options), std::move(options))}, handler_{handler},
      connector_{transport, *this} {}

StreamSocket::~StreamSocket() = default;

// --- connecting -----------------------------------------------------------------------------

void StreamSocket::connect(const Address& remote) {
    NETIO_CHECK_MSG(!conversation_ && !connector_.is_connecting(),
                    "the socket is connected or connecting");
    shut_down_ = false;
    last_counters_ = {};
    connector_.connect(remote, options_.local_host);
}

void StreamSocket::on_route(const Route& route) {
    conversation_ = std::make_unique<Conversation>(*this, route);
}

void StreamSocket::on_connect_failed(const Closed& closed) {
    handler_.on_closed(*this, closed); // may destroy this socket
}

void StreamSocket::accept(IncomingSession& incoming) {
    conversation_ = std::make_unique<Conversation>(*this, incoming);
}

void StreamSocket::on_open() {
    connector_.cancel();
    if (shut_down_) conversation_->shutdown_send();
    handler_.on_connected(*this); // may destroy this socket
}

void StreamSocket::on_ended(const Closed& closed) {
    const std::unique_ptr<Conversation> ended = std::move(conversation_);
    // What was closed here wants no other route.
    if (connector_.is_connecting()) {
        if (closed.reason != CloseReason::local) return connector_.try_next(closed);
        connector_.cancel();
    }
    last_counters_ = ended->counters();
    handler_.on_closed(*this, Closed{closed}); // may destroy this socket
}

// --- the user's calls -----------------------------------------------------------------------

Status StreamSocket::send(const Slice& slice, Cookie cookie) {
    return conversation_ && !shut_down_ ? conversation_->send(slice, cookie) : Status::closed;
}

Status StreamSocket::receive(const Slice& slice, Cookie cookie, Fill fill) {
    return conversation_ ? conversation_->receive(slice, cookie, fill) : Status::closed;
}

void StreamSocket::shutdown_send() {
    if (!conversation_ && !connector_.is_connecting()) return;
    shut_down_ = true;
    if (is_connected()) conversation_->shutdown_send();
}

void StreamSocket::close() {
    shut_down_ = true;
    if (conversation_) return conversation_->close();
    if (connector_.is_connecting()) connector_.close();
}

void StreamSocket::abort() {
    if (conversation_) return conversation_->abort();
    if (connector_.is_connecting()) connector_.close();
}

// --- what can be asked ----------------------------------------------------------------------

bool StreamSocket::is_connected() const noexcept {
    return conversation_ && conversation_->is_open();
}

bool StreamSocket::peer_closes() const noexcept {
    return conversation_ && conversation_->peer_closes();
}

std::uint64_t StreamSocket::queued_bytes() const noexcept {
    return conversation_ ? conversation_->queued_bytes() : 0;
}

StreamSocket::Counters StreamSocket::counters() const {
    return conversation_ ? conversation_->counters() : last_counters_;
}

std::string StreamSocket::peer_address() const {
    return conversation_->session().peer_address();
}

const std::string& StreamSocket::provider() const noexcept {
    return conversation_->session().capabilities().provider;
}

} // namespace netio::stream::inline v0_2
