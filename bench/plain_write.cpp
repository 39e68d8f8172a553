// SPDX-License-Identifier: Apache-2.0

// The upper limit for a byte stream over RDMA write on this provider: a plain fi_writedata loop
// into buffers of the receiver, which are read in place and returned by a small message.

#include "bench/plain_endpoint.hpp"

namespace {

using bench::Arguments;
using bench::Endpoint;
using bench::window_of;

constexpr std::size_t credit_bytes = 8;

// Number of buffers returned by one message.
std::size_t credits_at_once(std::size_t window) {
    return std::max<std::size_t>(window / 4, 1);
}

void publish(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::Source source{arguments};
    const std::size_t window = window_of(arguments.size);
    std::size_t lent = window; // available buffers of the receiver
    std::size_t under_way = 0; // writes in flight
    std::size_t credit_messages = 0;
    std::uint64_t next = 0;
    const auto on_done = [&](std::size_t index) {
        if (index >= window) {
            --under_way;
            return;
        }
        endpoint.receive(index, arguments.size);
        lent += credits_at_once(window);
        ++credit_messages;
    };
    bench::run_source(
        source,
        [&] {
            while (lent == 0 || under_way == window)
                endpoint.wait(on_done);
            const std::size_t slot = next++ % window;
            source.prepare(endpoint.buffer(window + slot, arguments.size));
            endpoint.write(window + slot, slot, arguments.size);
            --lent;
            ++under_way;
        },
        [] {});
    while (under_way > 0)
        endpoint.wait(on_done);
    source.report();
    // The end of this process would end the connection: wait for the receiver's final message,
    // which follows all its credits.
    for (const std::size_t all = source.count() / credits_at_once(window) + 1;
         credit_messages < all;)
        endpoint.wait(on_done);
}

void subscribe(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::Sink sink{arguments};
    const std::size_t window = window_of(arguments.size);
    std::size_t sends = 0;
    std::size_t read = 0;
    bool last = false;
    const auto say = [&] {
        endpoint.send(window + sends % window, arguments.size, credit_bytes);
        ++sends;
    };
    while (!last) {
        endpoint.wait([&](std::size_t index) {
            if (index != Endpoint::peer_wrote) return; // a credit was sent
            const std::size_t slot = static_cast<std::size_t>(sink.count()) % window;
            last = sink.take(endpoint.buffer(slot, arguments.size), arguments.size);
            if (++read == credits_at_once(window)) {
                read = 0;
                say();
            }
        });
    }
    sink.report();
    bool left = false;
    say();
    const std::size_t word = window + (sends - 1) % window;
    while (!left)
        endpoint.wait([&](std::size_t index) { left = index == word; });
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    (arguments.publish ? publish : subscribe)(arguments);
}
