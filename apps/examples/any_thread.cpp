// SPDX-License-Identifier: Apache-2.0
// A client used by several threads: two of them read messages, a third subscribes to more fids and
// unsubscribes from them. It ends after COUNT messages: any_thread HOST:PORT COUNT
#include "pubsub/client/client.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

namespace pubsub = netio::pubsub;
using namespace std::chrono_literals;

static int run(const char* address, std::uint64_t count) {
    pubsub::Client::Options options;
    options.publishers = {netio::parse_address(address)};
    pubsub::Client client{std::move(options)};

    // Any thread may subscribe; this one waits for the answer.
    const pubsub::FidRange fids{pubsub::Fid{0}, pubsub::Fid{31}};
    if (client.subscribe({fids}, {}, 10s) != pubsub::Client::Answer::accepted) {
        std::fprintf(stderr, "no publisher at %s has accepted\n", address);
        return 1;
    }

    std::atomic<std::uint64_t> taken{0};
    const auto read = [&] {
        pubsub::MessageBatch messages;
        while (taken < count)
            taken += client.poll(messages, 100ms); // each message goes to one of the two
    };
    std::thread one{read};
    std::thread other{read};
    std::thread asking{[&] {
        const pubsub::FidRange more{pubsub::Fid{32}, pubsub::Fid{63}};
        client.subscribe({more}).get();
        client.unsubscribe(more);
    }};
    one.join();
    other.join();
    asking.join();
    client.close();
    std::printf("two threads took %s messages\n", taken >= count ? "enough" : "too few");
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s HOST:PORT COUNT\n", *argv);
        return 2;
    }
    try {
        return run(argv[1], std::strtoull(argv[2], nullptr, 10));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
