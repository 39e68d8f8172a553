// SPDX-License-Identifier: Apache-2.0

// A subscriber, with a publisher that sends arbitrary frames, in some inputs after authentication.

#include "netio/session/client_key.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"
#include "tests/fuzz/stranger.hpp"

#include <array>
#include <memory>
#include <string>

namespace netio::fuzz::subscriber_peer_fuzz {
namespace {

using pubsub::Fid;
using pubsub::FidRange;

struct User final : pubsub::SubscribeSocket::Handler {
    void on_message(pubsub::SubscribeSocket&, Fid, Bytes message, std::uint8_t) override {
        look_at(message);
    }
    void on_closed(pubsub::SubscribeSocket&, const Closed&, bool) override {}
};

const Target subscriber{
    "subscriber_peer", [](Bytes bytes) {
        Input input{bytes};
        Scene scene;
        User user;
        Stranger stranger{scene, Service::publish_subscribe};
        pubsub::SubscribeSocket::Options options;
        if (input.flag()) {
            const access::Protection level = stranger.hold_key_of_site(input);
            static const std::string file = site().client(7);
            options.key =
                std::make_shared<ClientKey>(ClientKey::Options{.file = file, .protection = level});
            options.session.rekey_after_bytes = 200;
        }
        options.publisher = stranger.listen(input);
        options.session.receive_buffer_bytes = 1024;
        options.largest_message_bytes = 4096;
        options.reconnect = input.flag();
        pubsub::SubscribeSocket socket{scene.transport(), options, user};
        socket.subscribe(FidRange{.first = Fid{1}, .last = Fid{9}});
        scene.run(std::chrono::milliseconds{1});
        while (!input.empty()) {
            if (input.below(16) != 0) {
                stranger.act(input);
                continue;
            }
            const Fid first{input.below(12)};
            const FidRange range{.first = first, .last = Fid{to_integer(first) + input.below(3)}};
            if (input.flag()) {
                socket.subscribe(range);
            } else {
                socket.unsubscribe(range);
            }
            if (input.below(64) == 0) socket.close();
        }
        scene.run(std::chrono::seconds{1});
    }};

} // namespace
} // namespace netio::fuzz::subscriber_peer_fuzz
