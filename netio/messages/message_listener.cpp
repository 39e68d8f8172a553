// SPDX-License-Identifier: Apache-2.0
#include "netio/base/option_check.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/session/session_listener.hpp"

#include <string>
#include <utility>

namespace netio::inline v0_3 {

std::string IncomingPeer::peer_address() const {
    return incoming_.peer_address();
}

std::unique_ptr<MessageSocket> IncomingPeer::accept(MessageSocket::Options options,
                                                    MessageSocket::Functions functions) {
    options.protocol = messages::two_way_protocol(incoming_.peer());
    auto socket =
        std::make_unique<MessageSocket>(transport_, std::move(options), std::move(functions));
    socket->accept(incoming_);
    return socket;
}

void IncomingPeer::reject(std::string why) {
    incoming_.reject({.code = RejectCode::full}, std::move(why));
}

// Offers peers with messages in both directions to the user's function, which may destroy the
// listener, and with it this object.
struct MessageListener::Impl final : public Retired, private SessionListener::Handler {
    Impl(Transport& its_transport, MessageListener::Options options,
         std::function<void(IncomingPeer&)> its_on_incoming)
        : transport{its_transport}, on_peer{std::move(its_on_incoming)}, protocol{options.protocol},
          listener{std::make_unique<SessionListener>(
              transport,
              SessionListener::Options{.service = Service::messages,
                                       .listen = std::move(options.listen),
                                       .allow_remote_anonymous = options.allow_remote_anonymous,
                                       .service_bytes = messages::service_bytes,
                                       .peer_limit = options.peer_limit,
                                       .connections_per_host = options.connections_per_host,
                                       .keys = std::move(options.keys)},
              static_cast<SessionListener::Handler&>(*this))} {}

    void on_incoming(IncomingSession& incoming) override {
        const Hello& hello = incoming.peer();
        if (!messages::is_two_way(hello)) {
            return incoming.reject(
                {.code = RejectCode::missing_feature, .required_bytes = two_way_feature},
                "it sends messages one way; this listener is for a MessageSocket");
        }
        if (messages::two_way_protocol(hello) != protocol) {
            return incoming.reject({.code = RejectCode::service_data},
                                   "its messages are of another protocol than those of this "
                                   "listener");
        }
        IncomingPeer peer{transport, incoming};
        on_peer(peer); // may destroy the listener
        if (!incoming.is_answered()) incoming.reject({.code = RejectCode::full});
    }

    Transport& transport;
    const std::function<void(IncomingPeer&)> on_peer;
    const std::uint8_t protocol;
    std::unique_ptr<SessionListener> listener;
};

MessageListener::MessageListener(Transport& transport, Options options,
                                 std::function<void(IncomingPeer&)> on_incoming) {
    require_between("protocol", options.protocol, 0, messages::request_protocol);
    impl_ = std::make_unique<Impl>(transport, std::move(options), std::move(on_incoming));
}

MessageListener::~MessageListener() {
    EventLoop& loop = impl_->transport.loop();
    check_destructor(loop, "MessageListener", impl_);
    if (!impl_) return; // in a child process
    impl_->listener.reset();
    loop.retire(std::move(impl_)); // its function may be running
}

std::vector<Endpoint> MessageListener::endpoints() const {
    NETIO_CHECK_CALLER(impl_->transport.loop(), "MessageListener");
    return impl_->listener->endpoints();
}

} // namespace netio::inline v0_3
