// SPDX-License-Identifier: Apache-2.0
#pragma once

// Subscribes with a netio::Subscriber, which has a loop on its own thread, and takes its messages
// in one of three ways: `callback`, a function on its thread; `batches`, taken by the main thread;
// `messages`, iterated there. For comparison with the socket of one thread.

#include "bench/netio_sockets.hpp"
#include "pubsub/client/subscriber.hpp"

#include <chrono>
#include <future>
#include <string>

namespace bench {

inline bool is_by_client(const Arguments& arguments) {
    return arguments.form == "callback" || arguments.form == "batches" ||
           arguments.form == "messages";
}

namespace by_client {

inline constexpr std::chrono::seconds long_time{10};

inline void take_batches(netio::Subscriber& subscriber, Sink& sink) {
    netio::pubsub::MessageBatch batch;
    for (bool is_last = false; !is_last;) {
        if (subscriber.receive(batch, long_time) == 0) fail("no message arrived");
        for (const netio::pubsub::MessageBatch::Item message : batch)
            is_last = sink.take(message.bytes.data(), message.bytes.size());
    }
}

inline void iterate(netio::Subscriber& subscriber, Sink& sink) {
    for (const netio::Message& message : subscriber)
        if (sink.take(message.bytes().data(), message.size())) return;
    fail("the publisher ended before its last message");
}

} // namespace by_client

inline void subscribe_by_client(const Arguments& arguments) {
    Sink sink{arguments};
    std::promise<void> last;
    netio::Subscriber::Options options;
    options.context.emplace(netio::Context::Options{.fabric = {.provider = arguments.provider}});
    if (arguments.form == "callback") {
        options.on_message = [&](const netio::Message& message) {
            if (sink.take(message.bytes().data(), message.size())) last.set_value();
        };
    }
    netio::Subscriber subscriber{address_of(arguments), options};
    for (const FidRange& fids : ranges_of(arguments))
        subscriber.subscribe(fids);
    if (arguments.form == "callback")
        last.get_future().wait();
    else if (arguments.form == "batches")
        by_client::take_batches(subscriber, sink);
    else
        by_client::iterate(subscriber, sink);
    subscriber.close();
    if (subscriber.stats().lost > 0) fail("the subscriber reports lost messages");
    sink.report();
}

} // namespace bench
