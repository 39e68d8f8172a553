// SPDX-License-Identifier: Apache-2.0
// Publishes a counter under fid 1, a thousand times a second: publisher HOST:PORT
#include "netio/fabric.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <csignal>
#include <cstdio>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    struct Handler final : netio::pubsub::Publisher::Handler {
    } handler; // subscribers may come and go
    netio::pubsub::BufferedPublishSocket socket{
        *transport,
        {.publisher = {.addresses = {netio::parse_address(argc > 1 ? argv[1]
                                                                   : "127.0.0.1:12345")}}},
        handler};
    std::uint64_t counter = 0;
    netio::Timer tick{loop, [&] {
                          const auto bytes = std::as_bytes(std::span{&counter, 1});
                          if (socket.publish(netio::pubsub::Fid{1}, bytes) == netio::Status::ok)
                              ++counter;
                          tick.start(1ms);
                      }};
    tick.start(1ms);
    netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) { loop.stop(); }};
    loop.run();
    std::printf("published %llu messages\n", static_cast<unsigned long long>(counter));
}
