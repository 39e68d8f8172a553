// SPDX-License-Identifier: Apache-2.0
// Prints the sizes of the messages of fid 1: subscriber_on_a_loop HOST:PORT
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

struct Printer final : netio::pubsub::SubscribeSocket::Handler {
    explicit Printer(netio::EventLoop& its_loop) : loop{its_loop} {}
    void on_message(netio::pubsub::SubscribeSocket& socket, netio::pubsub::Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        if (socket.arrivals().messages() % 1000 == 0)
            std::printf("%s: %zu bytes\n", to_string(fid).c_str(), message.size());
    }
    void on_closed(netio::pubsub::SubscribeSocket& socket, const netio::Closed& closed,
                   bool retrying) override {
        std::printf("%llu messages, %s%s\n",
                    static_cast<unsigned long long>(socket.arrivals().messages()),
                    explain(closed).c_str(), retrying ? ", trying again" : "");
        if (!retrying) loop.stop();
    }
    netio::EventLoop& loop;
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Printer printer{loop};
    netio::pubsub::SubscribeSocket::Options options;
    options.publisher = netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345");
    options.reconnect = true;
    netio::pubsub::SubscribeSocket socket{*transport, options, printer};
    socket.subscribe({1, 1});
    netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) { socket.close(); }};
    loop.run();
} catch (const std::exception& error) {
    std::fprintf(stderr, "subscriber: %s\n", error.what());
    return 1;
}
