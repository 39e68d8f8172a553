// SPDX-License-Identifier: Apache-2.0

// The provider alone: a plain fi_send/fi_recv loop. It is the upper limit for this framework; the
// difference is the framework's cost.

#include "bench/plain_endpoint.hpp"

namespace {

using bench::Arguments;
using bench::Endpoint;
using bench::window_of;

void publish(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::Source source{arguments};
    const std::size_t window = window_of(arguments.size);
    std::vector<std::size_t> free;
    for (std::size_t i = 2 * window; i > window; --i)
        free.push_back(i - 1);
    const auto give_back = [&](std::size_t index) {
        if (index < window) bench::fail("unexpected message");
        free.push_back(index);
    };
    bench::run_source(
        source,
        [&] {
            while (free.empty())
                endpoint.wait(give_back);
            const std::size_t index = free.back();
            free.pop_back();
            source.prepare(endpoint.buffer(index, arguments.size));
            endpoint.send(index, arguments.size);
        },
        [] {});
    while (free.size() < window)
        endpoint.wait(give_back);
    source.report();
    // The end of this process would end the connection: wait for the subscriber's answer.
    for (bool answered = false; !answered;)
        endpoint.wait([&](std::size_t) { answered = true; });
}

void subscribe(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::Sink sink{arguments};
    for (bool last = false; !last;) {
        endpoint.wait([&](std::size_t index) {
            last = sink.take(endpoint.buffer(index, arguments.size), arguments.size) || last;
            if (!last) endpoint.receive(index, arguments.size);
        });
    }
    sink.report();
    const std::size_t answer = window_of(arguments.size);
    endpoint.send(answer, arguments.size);
    for (bool sent = false; !sent;)
        endpoint.wait([&](std::size_t index) { sent = index == answer; });
}

// --- round trips ------------------------------------------------------------------------------

// One message at a time: sends `out`, or waits for `in` and posts it again.
void send_and_wait(Endpoint& endpoint, std::size_t window, std::size_t size, bool& arrived,
                   std::size_t& in) {
    endpoint.send(window, size);
    for (bool sent = false; !sent;) {
        endpoint.wait([&](std::size_t index) {
            if (index >= window) {
                sent = true;
            } else {
                in = index;
                arrived = true;
            }
        });
    }
}

void echo(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::RoundTrips trips{arguments};
    const std::size_t size = arguments.size;
    const std::size_t window = window_of(size);
    std::byte* const out = endpoint.buffer(window, size);
    bool arrived = false;
    std::size_t in = 0;
    for (bool last = false; !last;) {
        if (arguments.publish) {
            trips.prepare(out);
            send_and_wait(endpoint, window, size, arrived, in);
        }
        while (!arrived) {
            endpoint.wait([&](std::size_t index) {
                in = index;
                arrived = true;
            });
        }
        arrived = false;
        std::byte* const message = endpoint.buffer(in, size);
        last = arguments.publish ? trips.take(message) : bench::is_last(message);
        if (!arguments.publish) std::memcpy(out, message, size);
        endpoint.receive(in, size);
        if (!arguments.publish) send_and_wait(endpoint, window, size, arrived, in);
    }
    if (arguments.publish) trips.report();
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    if (arguments.pattern == "echo") {
        echo(arguments);
    } else {
        (arguments.publish ? publish : subscribe)(arguments);
    }
}
