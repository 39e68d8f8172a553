// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_listener.hpp"

#include "stream/socket/frames.hpp"

namespace netio::stream::inline v0_2 {

std::unique_ptr<StreamSocket> IncomingStream::accept(StreamSocket::Options options,
                                                     StreamSocket::Handler& handler) {
    auto socket = std::make_unique<StreamSocket>(transport_, std::move(options), handler);
    socket->accept(incoming_);
    return socket;
}

StreamListener::StreamListener(Transport& transport, std::vector<Address> addresses,
                               Handler& handler)
    : transport_{transport}, handler_{handler}, listener_{
                                                    transport,
                                                    {.service = Service::stream,
                                                     .addresses = std::move(addresses),
                                                     .service_bytes = hello_bytes,
                                                     .required_receive_bytes = frame_limit_bytes},
                                                    *this} {}

StreamListener::~StreamListener() = default;

std::vector<SessionListener::Endpoint> StreamListener::endpoints() const {
    return listener_.endpoints();
}

void StreamListener::on_incoming(IncomingSession& incoming) {
    Hello peer;
    if (decode_hello(incoming.peer().service_data.span(), peer) != DecodeError::none) {
        return incoming.reject({.code = RejectCode::service_data});
    }
    IncomingStream stream{transport_, incoming};
    handler_.on_incoming(stream); // may destroy this listener
    if (!incoming.is_answered()) incoming.reject({.code = RejectCode::full});
}

void StreamListener::on_accept_failed(const std::string& peer_address, const FabricError& why) {
    handler_.on_accept_failed(peer_address, why); // may destroy this listener
}

} // namespace netio::stream::inline v0_2
