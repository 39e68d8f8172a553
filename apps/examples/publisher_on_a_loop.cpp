// SPDX-License-Identifier: Apache-2.0
// Publishes a counter under fid 1, a thousand times a second: publisher_on_a_loop HOST:PORT
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

using namespace std::chrono_literals;

// Subscribers may connect and disconnect. After an orderly close() all of them have received
// everything.
struct Handler final : netio::pubsub::Publisher::Handler {
    explicit Handler(netio::EventLoop& its_loop) : loop{its_loop} {}
    void on_closed(netio::pubsub::Publisher&, const netio::Closed& closed) override {
        orderly = closed.reason == netio::CloseReason::orderly;
        if (!orderly) std::fprintf(stderr, "publisher: %s\n", explain(closed).c_str());
        loop.stop();
    }
    netio::EventLoop& loop;
    bool orderly = false;
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Handler handler{loop};
    netio::pubsub::BufferedPublishSocket::Options options;
    options.publisher.listen = {netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345")};
    options.publisher.allow_remote_anonymous =
        argc > 1; // any peer that reaches the address may connect
    netio::pubsub::BufferedPublishSocket socket{*transport, options, handler};
    std::uint64_t counter = 0;
    netio::Timer tick = netio::Timer::every(loop, 1ms, [&] {
        const auto bytes = std::as_bytes(std::span{&counter, 1});
        if (socket.publish(1, bytes) == netio::Status::ok) ++counter;
    });
    bool closing = false;
    netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) {
                                tick.cancel();
                                if (closing)
                                    return socket.abort(); // the second signal does not wait
                                closing = true;
                                socket.close();
                            }};
    loop.run();
    std::printf("published %llu messages\n", static_cast<unsigned long long>(counter));
    return handler.orderly ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "publisher: %s\n", error.what());
    return 1;
}
