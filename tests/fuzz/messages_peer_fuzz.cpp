// SPDX-License-Identifier: Apache-2.0

// Point-to-point sockets, receiving and sending ones, with a peer that sends arbitrary frames.

#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"
#include "tests/fuzz/stranger.hpp"

#include <optional>

namespace netio::fuzz::messages_peer_fuzz {
namespace {

struct Receiving final : ListenSocket::Handler {
    void on_connected(ReceiveSocket&) override {}
    void on_message(ReceiveSocket&, Bytes message, std::optional<std::uint64_t>) override {
        look_at(message);
    }
    void on_closed(ReceiveSocket&, const Closed&) override {}
};

struct Sending final : SendSocket::Handler {
    void on_connected(SendSocket&) override {}
    void on_send_completed(SendSocket&, Cookie, Completion::Outcome) override { ++completed; }
    void on_writable(SendSocket&) override {}
    void on_closed(SendSocket&, const Closed&) override {}
    std::uint64_t completed = 0;
};

void receive(Scene& scene, Input& input) {
    Receiving user;
    ListenSocket::Options options{.listen = {Scene::address()}, .largest_message_bytes = 4096};
    options.session.receive_buffer_bytes = 1024;
    ListenSocket socket{scene.transport(), options, user};
    Stranger stranger{scene, Service::messages};
    stranger.connect(socket.endpoints().front().address, input);
    while (!input.empty())
        stranger.act(input);
    scene.run(std::chrono::seconds{1});
}

void send(Scene& scene, Input& input) {
    Sending user;
    RegisteredBuffer memory{3000};
    Stranger stranger{scene, Service::messages};
    SendSocket socket{scene.transport(), {}, user};
    socket.connect(stranger.listen(input));
    scene.run(std::chrono::milliseconds{1});
    std::uint64_t accepted = 0;
    while (!input.empty()) {
        if (input.below(4) != 0) {
            stranger.act(input);
            continue;
        }
        const Slice slice = memory.slice(0, input.number(2) % memory.size());
        if (socket.send(slice, Cookie{accepted}) == Status::ok) ++accepted;
    }
    scene.run(std::chrono::minutes{2});
    NETIO_CHECK(user.completed <= accepted);
}

const Target messages{"messages_peer", [](Bytes bytes) {
                          Input input{bytes};
                          Scene scene;
                          if (input.flag()) {
                              receive(scene, input);
                          } else {
                              send(scene, input);
                          }
                      }};

} // namespace
} // namespace netio::fuzz::messages_peer_fuzz
