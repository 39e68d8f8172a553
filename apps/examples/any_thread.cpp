// SPDX-License-Identifier: Apache-2.0
// A subscriber used by several threads: two of them read messages, a third subscribes to more fids
// and unsubscribes from them. It ends after COUNT messages: any_thread HOST:PORT COUNT
#include "pubsub/pubsub.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

using namespace std::chrono_literals;

static int run(const char* address, std::uint64_t count) {
    netio::Subscriber subscriber{address};

    // Any thread may subscribe; this one waits for the answer.
    subscriber.subscribe({0, 31});
    if (!subscriber.wait_until_subscribed(10s)) {
        std::fprintf(stderr, "no publisher at %s has accepted\n", address);
        return 1;
    }

    std::atomic<std::uint64_t> taken{0};
    const auto read = [&] {
        netio::pubsub::MessageBatch messages;
        while (taken < count)
            taken += subscriber.receive(messages, 100ms); // each message goes to one of the two
    };
    std::thread one{read};
    std::thread other{read};
    std::thread asking{[&] {
        subscriber.subscribe({32, 63});
        subscriber.wait_until_subscribed(netio::FidSet{{32, 63}}, 10s);
        subscriber.unsubscribe({32, 63});
    }};
    one.join();
    other.join();
    asking.join();
    subscriber.close();
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
