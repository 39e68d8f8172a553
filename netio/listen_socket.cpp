// SPDX-License-Identifier: Apache-2.0
#include "netio/listen_socket.hpp"

#include "netio/messages.hpp"

namespace netio {

ListenSocket::ListenSocket(Transport& transport, Options options, Handler& handler)
    : options_{std::move(options)}, handler_{handler} {
    validate(options_.link);
    listener_ = std::make_unique<LinkListener>(
        transport,
        LinkListener::Options{.service = Service::messages, .addresses = options_.addresses},
        static_cast<LinkListener::Handler&>(*this));
}

ListenSocket::~ListenSocket() = default;

void ListenSocket::on_incoming(IncomingLink& incoming) {
    if (peers_.size() >= options_.peer_limit) return incoming.reject({.code = RejectCode::full});
    auto socket = std::make_unique<ReceiveSocket>();
    try {
        socket->link_ = incoming.accept({.service = Service::messages, .service_data = {}},
                                        options_.link, *this);
    } catch (const FabricError&) {
        return; // no memory or descriptors for another one: the request is rejected
    }
    peers_.emplace(socket->link_.get(), std::move(socket));
}

void ListenSocket::on_open(Link& link) {
    ReceiveSocket& socket = *peers_.at(&link);
    socket.announced_ = true;
    handler_.on_connected(socket);
}

void ListenSocket::on_frame(Link& link, const IncomingFrame& frame) {
    const bool has_immediate = frame.flags == messages::immediate_flag;
    const std::size_t header = has_immediate ? messages::immediate_bytes : 0;
    if (frame.kind != messages::message_kind || (frame.flags != 0 && !has_immediate) ||
        frame.body.size() < header) {
        return link.fail(CloseReason::protocol_error,
                         link.peer_address() + " sent a malformed message frame");
    }
    std::optional<std::uint64_t> immediate;
    if (has_immediate) immediate = wire::load<std::uint64_t>(frame.body.data());
    handler_.on_message(*peers_.at(&link), frame.body.subspan(header), immediate);
}

void ListenSocket::on_sent(Link&, Cookie, Completion::Outcome) {}

void ListenSocket::on_room(Link&) {}

void ListenSocket::on_closed(Link& link, const Closed& closed) {
    // Out of the table first: the handler may destroy this listen socket.
    const auto node = peers_.extract(&link);
    // Who never finished the handshake was never announced.
    if (node.mapped()->announced_) handler_.on_closed(*node.mapped(), closed);
}

} // namespace netio
