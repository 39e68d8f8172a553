// SPDX-License-Identifier: Apache-2.0
#include "stream/stream_listener.hpp"

#include "stream/frames.hpp"

namespace stream {

std::unique_ptr<StreamSocket> IncomingStream::accept(StreamOptions options,
                                                     StreamSocket::Handler& handler) {
    auto socket = std::make_unique<StreamSocket>(transport_, std::move(options), handler);
    socket->accept(incoming_);
    return socket;
}

StreamListener::StreamListener(netio::Transport& transport, std::vector<netio::Address> addresses,
                               Handler& handler)
    : transport_{transport}, handler_{handler}, listener_{
                                                    transport,
                                                    {.service = netio::Service::stream,
                                                     .addresses = std::move(addresses),
                                                     .service_bytes = hello_bytes,
                                                     .required_receive_bytes = frame_limit_bytes},
                                                    *this} {}

void StreamListener::on_incoming(netio::IncomingLink& incoming) {
    Hello peer;
    if (decode_hello(incoming.peer().service_data.span(), peer) != DecodeError::none) {
        return incoming.reject({.code = netio::RejectCode::service_data});
    }
    IncomingStream stream{transport_, incoming};
    handler_.on_incoming(stream); // may destroy this listener
    if (!incoming.is_answered()) incoming.reject({.code = netio::RejectCode::full});
}

void StreamListener::on_turned_away(const std::string& peer_address,
                                    const netio::FabricError& why) {
    handler_.on_turned_away(peer_address, why); // may destroy this listener
}

} // namespace stream
