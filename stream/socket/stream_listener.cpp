// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/stream_listener.hpp"

#include "netio/loop/check_caller.hpp"
#include "netio/session/session_listener.hpp"
#include "stream/core/wire.hpp"

namespace netio::stream::inline v0_3 {

std::unique_ptr<StreamSocket> IncomingStream::accept(StreamSocket::Options options,
                                                     StreamSocket::Handler& handler) {
    auto socket = std::make_unique<StreamSocket>(transport_, std::move(options), handler);
    socket->accept(incoming_);
    return socket;
}

void IncomingStream::reject(std::string why) {
    incoming_.reject({.code = RejectCode::full}, std::move(why));
}

const access::Rights* IncomingStream::rights() const noexcept {
    return incoming_.rights();
}

std::string IncomingStream::peer_address() const {
    return incoming_.peer_address();
}

// Offers peers with the stream protocol to the listener's handler, which may destroy the listener,
// and with it this object.
class StreamAcceptor final : private SessionListener::Handler {
  public:
    StreamAcceptor(Transport& transport, StreamListener::Options options,
                   StreamListener::Handler& handler)
        : transport_{transport}, handler_{handler}, listener_{transport,
                                                              {.service = Service::stream,
                                                               .listen = std::move(options.listen),
                                                               .allow_remote_anonymous =
                                                                   options.allow_remote_anonymous,
                                                               .service_bytes = hello_bytes,
                                                               .required_receive_bytes =
                                                                   frame_limit_bytes,
                                                               .keys = std::move(options.keys)},
                                                              *this} {}

    std::vector<Endpoint> endpoints() const { return listener_.endpoints(); }
    EventLoop& loop() const noexcept { return transport_.loop(); }

  private:
    void on_incoming(IncomingSession& incoming) override {
        Hello peer;
        if (decode_hello(incoming.peer().service_data.span(), peer) != DecodeError::none) {
            return incoming.reject({.code = RejectCode::service_data});
        }
        IncomingStream stream{transport_, incoming};
        handler_.on_incoming(stream);
        if (!incoming.is_answered()) incoming.reject({.code = RejectCode::full});
    }

    void on_accept_failed(const std::string& peer_address, const FabricError& why) override {
        handler_.on_accept_failed(peer_address, why);
    }

    Transport& transport_;
    StreamListener::Handler& handler_;
    SessionListener listener_;
};

StreamListener::StreamListener(Transport& transport, Options options, Handler& handler)
    : acceptor_{std::make_unique<StreamAcceptor>(transport, std::move(options), handler)} {}

StreamListener::~StreamListener() {
    check_destructor(acceptor_->loop(), "StreamListener", acceptor_);
}

std::vector<Endpoint> StreamListener::endpoints() const {
    NETIO_CHECK_CALLER(acceptor_->loop(), "StreamListener");
    return acceptor_->endpoints();
}

} // namespace netio::stream::inline v0_3
