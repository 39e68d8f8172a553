// SPDX-License-Identifier: Apache-2.0
// Prints how much arrives of fid 1: subscriber HOST:PORT
#include "netio/fabric.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <csignal>
#include <cstdio>

struct Printer final : netio::pubsub::SubscribeSocket::Handler {
    void on_message(netio::pubsub::SubscribeSocket& socket, netio::pubsub::Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        if (socket.arrivals().messages() % 1000 == 0)
            std::printf("%s: %zu bytes\n", to_string(fid).c_str(), message.size());
    }
    void on_closed(netio::pubsub::SubscribeSocket&, const netio::Closed& closed,
                   bool retrying) override {
        std::printf("%s%s\n", closed.detail.c_str(), retrying ? ", trying again" : "");
    }
};

int main(int argc, char** argv) {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Printer printer;
    netio::pubsub::SubscribeSocket socket{
        *transport,
        {.publisher = netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345"),
         .reconnect = true},
        printer};
    socket.subscribe(
        netio::pubsub::FidRange{.first = netio::pubsub::Fid{1}, .last = netio::pubsub::Fid{1}});
    netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) { loop.stop(); }};
    loop.run();
}
