// SPDX-License-Identifier: Apache-2.0

// A stream socket, accepting or connecting, with a peer that sends and writes arbitrary bytes.

#include "stream/socket/stream_listener.hpp"
#include "tests/fuzz/stranger.hpp"

#include <memory>

namespace netio::fuzz::stream_peer_fuzz {
namespace {

using stream::Fill;
using stream::StreamSocket;

stream::StreamSocket::Options small_options(stream::RemoteWrites remote_writes) {
    stream::StreamSocket::Options options{.receiver = stream::improved_receiver(1024, 4096)};
    options.remote_writes = remote_writes;
    options.frame_bytes = 2'000;
    options.session.receive_count = 16;
    options.session.send_count = 16;
    options.round_trip = std::chrono::hours{1};
    return options;
}

struct User final : StreamSocket::Handler, stream::StreamListener::Handler {
    void on_connected(StreamSocket&) override {}
    void on_send_completed(StreamSocket&, Cookie, Completion::Outcome) override { ++sends_ended; }
    void on_received(StreamSocket&, const stream::Received&) override { ++receives_ended; }
    void on_end_of_stream(StreamSocket&) override {}
    void on_closed(StreamSocket&, const Closed&) override {
        NETIO_CHECK_MSG(sends_ended == sends && receives_ended == receives,
                        "operations are left behind on_closed");
    }
    void on_incoming(stream::IncomingStream& incoming) override {
        if (!socket) socket = incoming.accept(small_options(remote_writes), *this);
    }

    // One send or receive, with memory that the test owns.
    void act(Input& input) {
        if (!socket || !socket->is_connected()) return;
        if (input.flag()) {
            const Slice slice = outgoing.slice(0, 1 + input.number(2) % 5000);
            if (socket->send(slice, Cookie{sends}) == Status::ok) ++sends;
        } else {
            const Slice slice = incoming_memory.slice(0, 1 + input.number(2) % 5000);
            const Fill fill = input.flag() ? Fill::all : Fill::some;
            if (socket->receive(slice, Cookie{receives}, fill) == Status::ok) ++receives;
        }
    }

    stream::RemoteWrites remote_writes = stream::RemoteWrites::guarded;
    std::uint64_t sends = 0;
    std::uint64_t sends_ended = 0;
    std::uint64_t receives = 0;
    std::uint64_t receives_ended = 0;
    RegisteredBuffer outgoing{8192};
    RegisteredBuffer incoming_memory{8192, Access::remote_write};
    std::unique_ptr<StreamSocket> socket;
};

const Target stream_peer{
    "stream_peer", [](Bytes bytes) {
        Input input{bytes};
        Scene scene;
        User user;
        if (input.below(2) != 0) user.remote_writes = stream::RemoteWrites::never;
        stream::StreamListener listener{scene.transport(), {.listen = {Scene::address()}}, user};
        Stranger stranger{scene, Service::stream};
        if (input.flag()) {
            stranger.connect(listener.endpoints().front().address, input);
        } else {
            user.socket = std::make_unique<StreamSocket>(scene.transport(),
                                                         small_options(user.remote_writes), user);
            user.socket->connect(stranger.listen(input));
            scene.run(std::chrono::milliseconds{1});
        }
        while (!input.empty()) {
            if (input.below(4) != 0) {
                stranger.act(input);
            } else {
                user.act(input);
            }
        }
        scene.run(std::chrono::minutes{2});
    }};

} // namespace
} // namespace netio::fuzz::stream_peer_fuzz
