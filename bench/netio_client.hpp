// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes with a Client, which has a loop on its own thread, and takes its messages in one of
// three ways: `callback`, a function on its thread; `batches`, polled by the main thread;
// `messages`, polled with their own memory. For comparison with the socket of one thread.

#include "bench/netio_sockets.hpp"
#include "pubsub/client/client.hpp"

#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bench {

inline bool is_by_client(const Arguments& arguments) {
    return arguments.form == "callback" || arguments.form == "batches" ||
           arguments.form == "messages";
}

namespace by_client {

using netio::pubsub::Client;
inline constexpr std::chrono::seconds long_time{10};
inline constexpr std::size_t most_at_a_time = 1000;

inline void poll_batches(Client& client, Sink& sink) {
    netio::pubsub::MessageBatch batch;
    for (bool is_last = false; !is_last;) {
        if (client.poll(batch, long_time) == 0) fail("no message arrived");
        for (const netio::pubsub::MessageBatch::Item message : batch)
            is_last = sink.take(message.bytes.data(), message.bytes.size());
    }
}

inline void poll_messages(Client& client, Sink& sink) {
    std::vector<netio::pubsub::Message> messages;
    for (bool is_last = false; !is_last;) {
        messages.clear();
        if (client.poll(messages, most_at_a_time, long_time) == 0) fail("no message arrived");
        for (const netio::pubsub::Message& message : messages)
            is_last = sink.take(message.bytes.data(), message.bytes.size());
    }
}

} // namespace by_client

inline void subscribe_by_client(const Arguments& arguments) {
    Sink sink{arguments};
    std::promise<void> last;
    netio::pubsub::Client::Options options;
    options.publishers = {address_of(arguments)};
    options.fabric.provider = arguments.provider;
    if (arguments.form == "callback") {
        options.on_message = [&](Fid, std::span<const std::byte> message, std::uint8_t) {
            if (sink.take(message.data(), message.size())) last.set_value();
        };
    }
    netio::pubsub::Client client{std::move(options)};
    client.subscribe(ranges_of(arguments), {}, by_client::long_time);
    if (arguments.form == "callback")
        last.get_future().wait();
    else if (arguments.form == "batches")
        by_client::poll_batches(client, sink);
    else
        by_client::poll_messages(client, sink);
    client.close();
    const netio::pubsub::Client::Counters counters = client.counters();
    if (counters.missed > 0 || counters.dropped > 0) fail("the client reports lost messages");
    sink.report();
}

} // namespace bench
