// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_socket_core.hpp"

#include "netio/base/check.hpp"

#include <utility>

namespace netio::stream::inline v0_2 {

StreamSocket::Core::Core(StreamSocket& socket, Transport& transport, Options options,
                         StreamSocket::Handler& handler)
    : socket_{socket}, transport_{transport}, loop_{transport.loop()},
      options_{(validate(options), std::move(options))}, handler_{handler},
      connector_{transport, *this, options_.session.connect_timeout} {}

// --- connecting -----------------------------------------------------------------------------

void StreamSocket::Core::connect(const Address& remote) {
    NETIO_CHECK_MSG(!conversation_ && !connector_.is_connecting(),
                    "the socket is connected or connecting");
    shut_down_ = closing_ = false;
    last_counters_ = {};
    connector_.connect(remote, options_.local_host, options_.key);
}

void StreamSocket::Core::on_route(const Session::Target& target) {
    conversation_ = std::make_unique<Conversation>(*this, target);
}

void StreamSocket::Core::on_connect_failed(const Closed& closed) {
    handler_.on_closed(socket_, closed); // may destroy this
}

void StreamSocket::Core::accept(IncomingSession& incoming) {
    conversation_ = std::make_unique<Conversation>(*this, incoming);
}

void StreamSocket::Core::on_open() {
    connector_.cancel();
    if (shut_down_) conversation_->shutdown_send();
    handler_.on_connected(socket_);
}

void StreamSocket::Core::on_ended(const Closed& closed) {
    const std::unique_ptr<Conversation> ended = std::move(conversation_);
    // What was closed here wants no other route, though the attempt may have failed before.
    if (connector_.is_connecting()) {
        return closing_ ? connector_.close() : connector_.try_next(closed);
    }
    last_counters_ = ended->counters();
    handler_.on_closed(socket_, Closed{closed});
}

// --- the user's calls -----------------------------------------------------------------------

Status StreamSocket::Core::send(const Slice& slice, Cookie cookie) {
    return conversation_ && !shut_down_ ? conversation_->send(slice, cookie) : Status::closed;
}

void StreamSocket::Core::shutdown_send() {
    if (!conversation_ && !connector_.is_connecting()) return;
    shut_down_ = true;
    if (is_connected()) conversation_->shutdown_send();
}

void StreamSocket::Core::close() {
    shut_down_ = closing_ = true;
    if (conversation_) return conversation_->close();
    if (connector_.is_connecting()) connector_.close();
}

void StreamSocket::Core::abort() {
    closing_ = true;
    if (conversation_) return conversation_->abort();
    if (connector_.is_connecting()) connector_.close();
}

} // namespace netio::stream::inline v0_2
