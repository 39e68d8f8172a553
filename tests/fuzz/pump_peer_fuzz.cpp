// SPDX-License-Identifier: Apache-2.0

// A pump server with a client that requests anything and then sends, receives and disconnects at
// any time; and a pump with a server that answers anything. Their streams are correct, the content
// is not.

#include "apps/pump/end.hpp"
#include "tests/fuzz/stranger.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace netio::fuzz::pump_peer_fuzz {
namespace {

using apps::pump::Header;
using stream::StreamSocket;

constexpr std::size_t memory_limit_bytes = 64 * 1024;

StreamSocket::Options stream_options() {
    StreamSocket::Options options{.receiver = stream::improved_receiver(4096)};
    options.session.receive_count = 16;
    options.session.send_count = 16;
    return options;
}

// The other side of the stream.
class Peer final : public StreamSocket::Handler, public stream::StreamListener::Handler {
    // Must outlive the socket that uses it.
    RegisteredBuffer outgoing_{4096};
    RegisteredBuffer incoming_{4096, Access::remote_write};

  public:
    std::unique_ptr<StreamSocket> socket;

    void act(Input& input) {
        if (!socket || !socket->is_connected()) return;
        switch (input.below(8)) {
        case 0:
            return send(header(input));
        case 1:
            return socket->shutdown_send();
        case 2:
            if (input.below(8) == 0) socket->abort();
            return;
        case 3: {
            const Slice slice = incoming_.slice(0, 1 + input.number(2) % incoming_.size());
            static_cast<void>(socket->receive(slice, Cookie{0}, stream::Fill::some));
            return;
        }
        case 4:
            return send(std::as_bytes(std::span{report_}));
        default:
            return send(input.take(input.number(2) % 3000));
        }
    }
    // A valid header is more frequent than by chance.
    static std::array<std::byte, apps::pump::header_bytes> header(Input& input) {
        Header header{.bytes = input.wild(), .seed = input.wild(), .size_max = 1 + input.wild()};
        header.verify = input.flag();
        header.bidirectional = input.flag();
        auto bytes = apps::pump::encode(header);
        if (input.below(8) == 0) bytes[input.below(bytes.size())] = std::byte{input.byte()};
        return bytes;
    }

    void on_send_completed(StreamSocket&, Cookie, Completion::Outcome) override {}
    void on_received(StreamSocket&, const stream::Received&) override {}
    void on_closed(StreamSocket&, const Closed&) override {}
    void on_incoming(stream::IncomingStream& incoming) override {
        if (!socket) socket = incoming.accept(stream_options(), *this);
    }

  private:
    void send(std::span<const std::byte> bytes) {
        if (bytes.empty()) return;
        // Overwrites memory even if a send of it is in flight: this peer does not care.
        std::ranges::copy(bytes, outgoing_.data());
        static_cast<void>(socket->send(outgoing_.slice(0, bytes.size()), Cookie{0}));
    }

    static constexpr std::string_view report_ = R"({"error":7,"bytes":"x","seconds":null})";
};

void play(Scene& scene, Peer& peer, Input& input) {
    while (!input.empty()) {
        peer.act(input);
        scene.run(std::chrono::milliseconds{1} * input.below(4));
        if (input.below(32) == 0) scene.run(std::chrono::seconds{1} * input.below(90));
    }
    scene.run(std::chrono::minutes{3});
}

void serve(Scene& scene, Input& input) {
    std::size_t ended = 0;
    apps::pump::Server server{scene.loop(),
                              scene.transport(),
                              {.listen = {Scene::address()},
                               .client_limit_count = 2,
                               .settings = {.stream = stream_options(),
                                            .sends = 4,
                                            .receives = 4,
                                            .memory_limit_bytes = memory_limit_bytes,
                                            .idle_limit = std::chrono::minutes{1}}},
                              [&](const apps::pump::End& end) {
                                  ++ended;
                                  look_at(std::as_bytes(std::span{end.error()}));
                              }};
    Peer peer;
    peer.socket = std::make_unique<StreamSocket>(scene.transport(), stream_options(), peer);
    peer.socket->connect(server.endpoints().front().address);
    scene.run(std::chrono::milliseconds{1});
    play(scene, peer, input);
    scene.run(std::chrono::milliseconds{1}); // removes a client that ended last
    NETIO_CHECK(server.client_count() + ended <= 1);
}

void pump(Scene& scene, Input& input) {
    Peer peer;
    const stream::StreamListener listener{scene.transport(), {.listen = {Scene::address()}}, peer};
    bool ended = false;
    apps::pump::End end{scene.loop(),
                        scene.transport(),
                        listener.endpoints().front().address,
                        {.stream = stream_options(), .sends = 2, .receives = 2},
                        {.bytes = input.number(2),
                         .seed = 1,
                         .size_min = 1,
                         .size_max = 1000,
                         .verify = input.flag(),
                         .bidirectional = input.flag()},
                        [&](const apps::pump::End&) { ended = true; }};
    scene.run(std::chrono::milliseconds{1});
    play(scene, peer, input);
    if (ended) look_at(std::as_bytes(std::span{end.error()}));
}

const Target pump_peer{"pump_peer", [](Bytes bytes) {
                           spdlog::set_level(spdlog::level::off);
                           Input input{bytes};
                           Scene scene;
                           input.flag() ? serve(scene, input) : pump(scene, input);
                       }};

} // namespace
} // namespace netio::fuzz::pump_peer_fuzz
