// SPDX-License-Identifier: Apache-2.0
// Messages in both directions over one connection: a client sends COUNT messages, a server returns
// each of them, and both end in order. Both are on one loop here: message_both_ways COUNT
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/messages/message_socket.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>

// One message is under way at a time, so there is always space. A handler must not throw.
static void must(netio::Status status) {
    if (status == netio::Status::ok) return;
    std::fprintf(stderr, "cannot send: %s\n", std::string{to_string(status)}.c_str());
    std::exit(1);
}

static int run(std::uint64_t count) {
    netio::EventLoop loop;
    netio::Transport& network = netio::network_of(loop);

    std::unique_ptr<netio::MessageSocket> server;
    netio::MessageListener listener{
        network, {.listen = "127.0.0.1:0"}, [&](netio::IncomingPeer& peer) {
            server =
                peer.accept({}, {.on_message =
                                     [&](const netio::IncomingMessage& message) {
                                         must(server->send(message.bytes())); // back to the peer
                                     },
                                 .on_peer_finished = [&] { server->finish(); }});
        }};

    std::uint64_t next = 0;
    std::uint64_t returned = 0;
    bool in_order = false;
    netio::MessageSocket* socket = nullptr;
    const auto send_next = [&] {
        if (next == count) return socket->finish();
        must(socket->send(std::as_bytes(std::span{&next, 1})));
        ++next;
    };
    netio::MessageSocket client{network,
                                {},
                                {.on_connected = send_next,
                                 .on_message =
                                     [&](const netio::IncomingMessage&) {
                                         ++returned;
                                         send_next();
                                     },
                                 .on_closed =
                                     [&](const netio::Closed& closed) {
                                         in_order = closed.reason == netio::CloseReason::orderly;
                                         if (!in_order)
                                             std::fprintf(stderr, "%s\n", explain(closed).c_str());
                                         loop.stop();
                                     }}};
    socket = &client;
    client.connect(listener.endpoints().front().address);
    loop.run();
    std::printf("%llu messages came back\n", static_cast<unsigned long long>(returned));
    return in_order && returned == count ? 0 : 1;
}

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s COUNT\n", *argv);
        return 2;
    }
    try {
        return run(std::strtoull(argv[1], nullptr, 10));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
