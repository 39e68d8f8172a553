// SPDX-License-Identifier: Apache-2.0
// Level 1 of the C interface: context, publisher, subscriber, sender, and blocking byte streams.
#include "apps/c/call.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

using netio::stream::BlockingListener;
using netio::stream::BlockingStream;
using netiodaq::done;
using netiodaq::guarded;
using netiodaq::required;

struct netiodaq_publisher {
    netiodaq_publisher(netio::AddressList listen, netio::Publisher::Options options)
        : publisher{std::move(listen), std::move(options)}, address{netio::to_string(
                                                                publisher.address())} {}
    netio::Publisher publisher;
    std::string address;
};

struct netiodaq_subscriber {
    netio::Subscriber subscriber;
};

struct netiodaq_batch {
    netio::pubsub::MessageBatch messages;
    std::vector<netiodaq_item> items;
};

struct netiodaq_sender {
    netio::Sender sender;
};

// --- context ---------------------------------------------------------------------------------

netiodaq_result netiodaq_context_new(const netiodaq_options* options, netiodaq_context** out) {
    return netiodaq::new_object(out, [&] {
        const auto settings = netiodaq::settings_of<netiodaq::LoopSettings>(options);
        return new netiodaq_context{netio::Context{settings.options}};
    });
}

netiodaq_result netiodaq_context_post(netiodaq_context* context, netiodaq_task task, void* user) {
    return guarded([&]() -> netiodaq_result {
        const netio::Context& to = required(context, "context").context;
        required(task, "task");
        return to.post([task, user] { task(user); }) ? netiodaq::ok
                                                     : netiodaq::failed(NETIODAQ_AGAIN);
    });
}

void netiodaq_context_free(netiodaq_context* context) {
    delete context;
}

// --- publisher -------------------------------------------------------------------------------

netiodaq_result netiodaq_publisher_new(netiodaq_context* context, const char* addresses,
                                       const netiodaq_options* options, netiodaq_publisher** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::PublisherSettings>(options);
        auto listen = netiodaq::addresses_of(addresses);
        const netio::Context its = context != nullptr ? context->context : netio::Context{};
        settings.options.context = its;
        settings.options.keys = netiodaq::keys_of(settings.keys, its);
        return new netiodaq_publisher{std::move(listen), std::move(settings.options)};
    });
}

netiodaq_result netiodaq_publisher_publish(netiodaq_publisher* publisher, std::uint64_t fid,
                                           const void* data, std::uint64_t size_bytes,
                                           std::uint8_t status) {
    return guarded([&]() -> netiodaq_result {
        netio::Publisher& to = required(publisher, "publisher").publisher;
        return to.publish(fid, netiodaq::bytes_of(data, size_bytes), status)
                   ? NETIODAQ_OK
                   : NETIODAQ_NO_SUBSCRIBERS;
    });
}

netiodaq_result netiodaq_publisher_try_publish(netiodaq_publisher* publisher, std::uint64_t fid,
                                               const void* data, std::uint64_t size_bytes,
                                               std::uint8_t status) {
    return guarded([&] {
        netio::Publisher& to = required(publisher, "publisher").publisher;
        return netiodaq::result_of(
            to.try_publish(fid, netiodaq::bytes_of(data, size_bytes), status));
    });
}

netiodaq_result netiodaq_publisher_wait_for_subscribers(netiodaq_publisher* publisher,
                                                        std::uint64_t count,
                                                        std::int64_t timeout_ms) {
    return guarded([&]() -> netiodaq_result {
        const netio::Publisher& of = required(publisher, "publisher").publisher;
        if (of.wait_for_subscribers(count, netiodaq::timeout_of(timeout_ms))) return NETIODAQ_OK;
        if (of.is_closed()) return netiodaq::failed(NETIODAQ_CLOSED);
        throw netiodaq::Failure{NETIODAQ_TIMED_OUT, std::to_string(of.stats().subscribers) +
                                                        " of " + std::to_string(count) +
                                                        " subscribers after " +
                                                        std::to_string(timeout_ms) + " ms"};
    });
}

netiodaq_result netiodaq_publisher_close(netiodaq_publisher* publisher) {
    return done([&] { required(publisher, "publisher").publisher.close(); });
}

std::int32_t netiodaq_publisher_is_closed(const netiodaq_publisher* publisher) {
    return publisher != nullptr && publisher->publisher.is_closed() ? 1 : 0;
}

const char* netiodaq_publisher_address(const netiodaq_publisher* publisher) {
    return publisher != nullptr ? publisher->address.c_str() : nullptr;
}

netiodaq_result netiodaq_publisher_get_stats(const netiodaq_publisher* publisher,
                                             netiodaq_publisher_stats* stats) {
    return done([&] {
        const auto now = required(publisher, "publisher").publisher.stats();
        netiodaq::fill(stats, "stats",
                       netiodaq_publisher_stats{.size_bytes = 0,
                                                .published = now.published,
                                                .without_subscribers = now.without_subscribers,
                                                .unpublished = now.unpublished,
                                                .subscribers = now.subscribers});
    });
}

void netiodaq_publisher_free(netiodaq_publisher* publisher) {
    delete publisher;
}

// --- subscriber ------------------------------------------------------------------------------

namespace {

netio::FidRange range_of(std::uint64_t first_fid, std::uint64_t last_fid) {
    return {.first = first_fid, .last = last_fid};
}

// Receives by `take`, which returns false if nothing arrives in time. A message may arrive between
// that and the end, so after the end, when nothing waits any more, it is called once more.
template <typename Take>
netiodaq_result received(const netio::Subscriber& subscriber, std::int64_t timeout_ms, Take take) {
    if (take(netiodaq::timeout_of(timeout_ms))) return NETIODAQ_OK;
    if (!subscriber.is_closed()) return netiodaq::failed(NETIODAQ_TIMED_OUT);
    return take(netiodaq::timeout_of(-1)) ? netiodaq::ok : netiodaq::failed(NETIODAQ_END);
}

} // namespace

netiodaq_result netiodaq_subscriber_new(netiodaq_context* context, const char* addresses,
                                        const netiodaq_options* options,
                                        netiodaq_subscriber** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::SubscriberSettings>(options);
        if ((addresses == nullptr) != settings.bus.has_value()) {
            throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                                    "a subscriber needs either addresses or the option bus.where"};
        }
        if (context != nullptr) settings.options.context = context->context;
        settings.options.key = netiodaq::key_of(settings.key);
        return addresses == nullptr
                   ? new netiodaq_subscriber{netio::Subscriber{*settings.bus, settings.options}}
                   : new netiodaq_subscriber{
                         netio::Subscriber{netiodaq::addresses_of(addresses), settings.options}};
    });
}

netiodaq_result netiodaq_subscriber_subscribe(netiodaq_subscriber* subscriber,
                                              std::uint64_t first_fid, std::uint64_t last_fid) {
    return done([&] {
        required(subscriber, "subscriber").subscriber.subscribe(range_of(first_fid, last_fid));
    });
}

netiodaq_result netiodaq_subscriber_subscribe_with_policy(netiodaq_subscriber* subscriber,
                                                          std::uint64_t first_fid,
                                                          std::uint64_t last_fid,
                                                          std::int32_t policy) {
    return done([&] {
        required(subscriber, "subscriber")
            .subscriber.subscribe(range_of(first_fid, last_fid), netiodaq::policy_of(policy));
    });
}

netiodaq_result netiodaq_subscriber_unsubscribe(netiodaq_subscriber* subscriber,
                                                std::uint64_t first_fid, std::uint64_t last_fid) {
    return done([&] {
        required(subscriber, "subscriber").subscriber.unsubscribe(range_of(first_fid, last_fid));
    });
}

netiodaq_result netiodaq_subscriber_wait_until_subscribed(netiodaq_subscriber* subscriber,
                                                          std::int64_t timeout_ms) {
    return guarded([&]() -> netiodaq_result {
        const netio::Subscriber& of = required(subscriber, "subscriber").subscriber;
        return of.wait_until_subscribed(netiodaq::timeout_of(timeout_ms))
                   ? netiodaq::ok
                   : netiodaq::failed(NETIODAQ_TIMED_OUT);
    });
}

netiodaq_result netiodaq_subscriber_receive(netiodaq_subscriber* subscriber,
                                            std::int64_t timeout_ms, netiodaq_message** out) {
    return guarded([&] {
        netiodaq::store_null(out);
        netio::Subscriber& from = required(subscriber, "subscriber").subscriber;
        auto message = std::make_unique<netiodaq_message>();
        return received(from, timeout_ms, [&](std::chrono::milliseconds timeout) {
            std::optional<netio::KeptMessage> kept = from.receive_kept(timeout);
            if (!kept) return false;
            message->message = std::move(*kept);
            *out = message.release();
            return true;
        });
    });
}

netiodaq_result netiodaq_subscriber_receive_batch(netiodaq_subscriber* subscriber,
                                                  std::int64_t timeout_ms, netiodaq_batch* batch) {
    return guarded([&] {
        netiodaq_batch& to = required(batch, "batch");
        to.items.clear();
        netio::Subscriber& from = required(subscriber, "subscriber").subscriber;
        return received(from, timeout_ms, [&](std::chrono::milliseconds timeout) {
            if (from.receive(to.messages, timeout) == 0) return false;
            to.items.reserve(to.messages.size());
            for (const netio::pubsub::MessageBatch::Item& item : to.messages) {
                to.items.push_back({.fid = item.fid.value(),
                                    .lost_before = item.lost_before,
                                    .data = item.bytes.data(),
                                    .size_bytes = item.bytes.size(),
                                    .status = item.status,
                                    .is_gap = item.is_gap ? 1U : 0U});
            }
            return true;
        });
    });
}

std::int32_t netiodaq_subscriber_fd(const netiodaq_subscriber* subscriber) {
    return subscriber != nullptr ? subscriber->subscriber.pollable_fd() : -1;
}

netiodaq_result netiodaq_subscriber_close(netiodaq_subscriber* subscriber) {
    return done([&] { required(subscriber, "subscriber").subscriber.close(); });
}

std::int32_t netiodaq_subscriber_is_closed(const netiodaq_subscriber* subscriber) {
    return subscriber != nullptr && subscriber->subscriber.is_closed() ? 1 : 0;
}

netiodaq_result netiodaq_subscriber_get_stats(const netiodaq_subscriber* subscriber,
                                              netiodaq_subscriber_stats* stats) {
    return done([&] {
        const auto now = required(subscriber, "subscriber").subscriber.stats();
        netiodaq::fill(stats, "stats",
                       netiodaq_subscriber_stats{.size_bytes = 0,
                                                 .messages = now.messages,
                                                 .lost = now.lost,
                                                 .lost_at_end = now.lost_at_end,
                                                 .dropped = now.dropped,
                                                 .restarts = now.restarts,
                                                 .unknown_tails = now.unknown_tails,
                                                 .publishers = now.publishers});
    });
}

void netiodaq_subscriber_free(netiodaq_subscriber* subscriber) {
    delete subscriber;
}

// --- messages --------------------------------------------------------------------------------

std::uint64_t netiodaq_message_fid(const netiodaq_message* message) {
    return message != nullptr ? message->message.fid().value() : 0;
}

const void* netiodaq_message_data(const netiodaq_message* message) {
    return message != nullptr ? message->message.bytes().data() : nullptr;
}

std::uint64_t netiodaq_message_size_bytes(const netiodaq_message* message) {
    return message != nullptr ? message->message.size() : 0;
}

std::uint8_t netiodaq_message_status(const netiodaq_message* message) {
    return message != nullptr ? message->message.view().status() : std::uint8_t{0};
}

std::uint64_t netiodaq_message_lost_before(const netiodaq_message* message) {
    return message != nullptr ? message->message.view().lost_before() : 0;
}

void netiodaq_message_free(netiodaq_message* message) {
    delete message;
}

netiodaq_result netiodaq_batch_new(netiodaq_batch** out) {
    return netiodaq::new_object(out, [&] { return new netiodaq_batch; });
}

std::uint64_t netiodaq_batch_count(const netiodaq_batch* batch) {
    return batch != nullptr ? batch->items.size() : 0;
}

const netiodaq_item* netiodaq_batch_items(const netiodaq_batch* batch) {
    return batch != nullptr ? batch->items.data() : nullptr;
}

void netiodaq_batch_free(netiodaq_batch* batch) {
    delete batch;
}

// --- sender ----------------------------------------------------------------------------------

netiodaq_result netiodaq_sender_new(netiodaq_context* context, const char* address,
                                    const netiodaq_options* options, netiodaq_sender** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::SenderSettings>(options);
        if (context != nullptr) settings.options.context = context->context;
        settings.options.key = netiodaq::key_of(settings.key);
        const netio::AddressList receiver = netiodaq::addresses_of(address);
        return new netiodaq_sender{netio::Sender{receiver, settings.options}};
    });
}

netiodaq_result netiodaq_sender_send(netiodaq_sender* sender, const void* data,
                                     std::uint64_t size_bytes) {
    return done(
        [&] { required(sender, "sender").sender.send(netiodaq::bytes_of(data, size_bytes)); });
}

netiodaq_result netiodaq_sender_try_send(netiodaq_sender* sender, const void* data,
                                         std::uint64_t size_bytes) {
    return guarded([&] {
        return netiodaq::result_of(
            required(sender, "sender").sender.try_send(netiodaq::bytes_of(data, size_bytes)));
    });
}

netiodaq_result netiodaq_sender_close(netiodaq_sender* sender) {
    return done([&] { required(sender, "sender").sender.close(); });
}

std::int32_t netiodaq_sender_is_closed(const netiodaq_sender* sender) {
    return sender != nullptr && sender->sender.is_closed() ? 1 : 0;
}

netiodaq_result netiodaq_sender_get_stats(const netiodaq_sender* sender,
                                          netiodaq_sender_stats* stats) {
    return done([&] {
        const auto now = required(sender, "sender").sender.stats();
        netiodaq::fill(stats, "stats",
                       netiodaq_sender_stats{.size_bytes = 0,
                                             .sent = now.sent,
                                             .unsent = now.unsent,
                                             .unconfirmed_frames = now.unconfirmed_frames,
                                             .connected = now.connected ? 1U : 0U});
    });
}

void netiodaq_sender_free(netiodaq_sender* sender) {
    delete sender;
}

struct netiodaq_stream {
    explicit netiodaq_stream(BlockingStream connected)
        : stream{std::move(connected)}, peer{stream.peer_address()} {}
    BlockingStream stream;
    std::string peer;
};

struct netiodaq_stream_listener {
    netiodaq_stream_listener(const char* at, const BlockingStream::Options& options)
        : listener{netiodaq::text_of(at, "address"), options}, address{netio::to_string(
                                                                   listener.address())} {}
    BlockingListener listener;
    std::string address;
};

namespace {

BlockingStream::Options stream_options(const netiodaq_options* options) {
    auto settings = netiodaq::settings_of<netiodaq::StreamSettings>(options);
    settings.options.keys = settings.keys;
    settings.options.stream.key = netiodaq::key_of(settings.key);
    return settings.options;
}

} // namespace

netiodaq_result netiodaq_stream_connect(const char* address, const netiodaq_options* options,
                                        netiodaq_stream** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_stream{BlockingStream::connect(netiodaq::text_of(address, "address"),
                                                           stream_options(options))};
    });
}

netiodaq_result netiodaq_stream_read(netiodaq_stream* stream, void* memory,
                                     std::uint64_t size_bytes, std::uint64_t* read_bytes) {
    return guarded([&]() -> netiodaq_result {
        required(read_bytes, "read_bytes") = 0;
        BlockingStream& from = required(stream, "stream").stream;
        const auto to = netiodaq::memory_of(memory, size_bytes);
        if (to.empty()) throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT, "size_bytes is 0"};
        *read_bytes = from.read(to);
        return *read_bytes > 0 ? netiodaq::ok : netiodaq::failed(NETIODAQ_END);
    });
}

netiodaq_result netiodaq_stream_read_exactly(netiodaq_stream* stream, void* memory,
                                             std::uint64_t size_bytes) {
    return done([&] {
        BlockingStream& from = required(stream, "stream").stream;
        from.read_exactly(netiodaq::memory_of(memory, size_bytes));
    });
}

netiodaq_result netiodaq_stream_write(netiodaq_stream* stream, const void* data,
                                      std::uint64_t size_bytes) {
    return done([&] {
        BlockingStream& to = required(stream, "stream").stream;
        to.write(netiodaq::bytes_of(data, size_bytes));
    });
}

netiodaq_result netiodaq_stream_shutdown_send(netiodaq_stream* stream) {
    return done([&] { required(stream, "stream").stream.shutdown_send(); });
}

netiodaq_result netiodaq_stream_close(netiodaq_stream* stream) {
    return done([&] { required(stream, "stream").stream.close(); });
}

netiodaq_result netiodaq_stream_set_call_timeout_ms(netiodaq_stream* stream,
                                                    std::int64_t timeout_ms) {
    return done([&] {
        required(stream, "stream").stream.set_call_timeout(std::chrono::milliseconds{timeout_ms});
    });
}

netiodaq_result netiodaq_stream_set_progress_timeout_ms(netiodaq_stream* stream,
                                                        std::int64_t timeout_ms) {
    return done([&] {
        required(stream, "stream")
            .stream.set_progress_timeout(std::chrono::milliseconds{timeout_ms});
    });
}

const char* netiodaq_stream_peer_address(const netiodaq_stream* stream) {
    return stream != nullptr ? stream->peer.c_str() : nullptr;
}

void netiodaq_stream_free(netiodaq_stream* stream) {
    delete stream;
}

netiodaq_result netiodaq_stream_listener_new(const char* address, const netiodaq_options* options,
                                             netiodaq_stream_listener** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_stream_listener{address, stream_options(options)};
    });
}

netiodaq_result netiodaq_stream_listener_accept(netiodaq_stream_listener* listener,
                                                netiodaq_stream** out) {
    return netiodaq::new_object(
        out, [&] { return new netiodaq_stream{required(listener, "listener").listener.accept()}; });
}

netiodaq_result netiodaq_stream_listener_stop(netiodaq_stream_listener* listener) {
    return done([&] { required(listener, "listener").listener.stop(); });
}

const char* netiodaq_stream_listener_address(const netiodaq_stream_listener* listener) {
    return listener != nullptr ? listener->address.c_str() : nullptr;
}

void netiodaq_stream_listener_free(netiodaq_stream_listener* listener) {
    delete listener;
}
