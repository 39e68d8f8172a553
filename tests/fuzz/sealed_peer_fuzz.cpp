// SPDX-License-Identifier: Apache-2.0

// A listening socket with keys, and a peer with a key: it passes the authentication, exchanges
// keys, and sends arbitrary frames, sealed correctly or not.

#include "netio/messages/listen_socket.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/fuzz/stranger.hpp"

namespace netio::fuzz::sealed_peer_fuzz {
namespace {

struct Receiving final : ListenSocket::Handler {
    void on_message(ReceiveSocket&, Bytes message, std::optional<std::uint64_t>) override {
        look_at(message);
    }
};

const Target sealed{
    "sealed_peer", [](Bytes bytes) {
        Input input{bytes};
        Scene scene;
        Receiving user;
        ListenSocket::Options options{.listen = {Scene::address()}, .largest_message_bytes = 4096};
        options.session.receive_buffer_bytes = 1024;
        options.session.rekey_after_bytes = 200;
        options.keys =
            std::make_shared<ServerKeys>(scene.loop(), ServerKeys::Options{.file = site().site()});
        ListenSocket socket{scene.transport(), options, user};
        Stranger stranger{scene, Service::messages};
        static_cast<void>(stranger.hold_key_of_site(input));
        stranger.connect(socket.endpoints().front().address, input);
        while (!input.empty())
            stranger.act(input);
        scene.run(std::chrono::seconds{1});
    }};

} // namespace
} // namespace netio::fuzz::sealed_peer_fuzz
