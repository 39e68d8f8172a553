// SPDX-License-Identifier: Apache-2.0
// Two publishers and a subscriber that find each other on a bus, all on one thread: first_steps BUS
#include <netio/pubsub.hpp>

#include <cstdio>
#include <exception>

using namespace std::chrono_literals;

static int run(const char* where) {
    const netio::Bus bus{where};
    netio::Context context;
    netio::Publisher camera{
        "127.0.0.1:0",
        {.context = context, .bus = bus, .name = "camera", .fids = netio::FidSet{{0, 63}}}};
    netio::Publisher trigger{
        "127.0.0.1:0",
        {.context = context, .bus = bus, .name = "trigger", .fids = netio::FidSet{{100, 100}}}};

    netio::Subscriber subscriber{bus, {.context = context}};
    subscriber.subscribe(netio::FidSet{{0, 7}, {100, 100}});
    if (!camera.wait_for_subscribers(1, 10s) || !trigger.wait_for_subscribers(1, 10s)) return 1;

    camera.publish(7, "a picture");
    trigger.publish_value(100, 12.5);
    for (int i = 0; i < 2; ++i) {
        const auto message = subscriber.receive(10s);
        if (!message) return 1;
        std::printf("%s: %zu bytes\n", to_string(message->fid()).c_str(), message->size());
    }
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s BUS\n", *argv);
        return 2;
    }
    try {
        return run(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
