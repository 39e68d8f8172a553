// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/publisher_metrics.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace apps {
namespace {

using netio::pubsub::ArrivedFigures;
using netio::pubsub::FidFigures;
using netio::pubsub::PublisherSnapshot;
using netio::pubsub::SourceFigures;
using netio::pubsub::SubscriberFigures;
using netio::pubsub::SubscriptionsSnapshot;

void write_pool(const PublisherFigures& publisher, Exposition& text) {
    const PublisherSnapshot& snapshot = publisher.snapshot;
    const Exposition::Labels unit{{"unit", publisher.unit}};
    text.gauge("netio_publisher_pool", "What messages that wait or are being sent may take")
        .add(unit, std::uint64_t{snapshot.pool});
    text.gauge("netio_publisher_free", "How much of the pool is free")
        .add(unit, std::uint64_t{snapshot.free});
    text.gauge("netio_publisher_least_free", "The least of it since the last scrape")
        .add(unit, std::uint64_t{snapshot.least_free});
}

// A row for each subscriber, under each name.
template <class Value>
void write_peers(Exposition::Family family, const PublisherSnapshot& snapshot, Value value) {
    for (const SubscriberFigures& each : snapshot.subscribers) {
        const std::string id = std::to_string(static_cast<std::uint64_t>(each.id) >> 32);
        family.add({{"peer", each.address}, {"id", id}}, value(each));
    }
}

void write_peers(const PublisherSnapshot& snapshot, Exposition& text) {
    const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
        write_peers(text.gauge(name, help), snapshot, value);
    };
    const auto counter = [&](std::string_view name, std::string_view help, auto value) {
        write_peers(text.counter(name, help), snapshot, value);
    };
    using Peer = const SubscriberFigures&;
    gauge("netio_peer_waiting", "Of the pool, in the subscriber's queue",
          [](Peer peer) { return std::uint64_t{peer.waiting}; });
    gauge("netio_peer_most_waiting", "The most of it since the last scrape",
          [](Peer peer) { return std::uint64_t{peer.most_waiting}; });
    gauge("netio_peer_posted", "Of the pool, being sent to the subscriber",
          [](Peer peer) { return std::uint64_t{peer.posted}; });
    gauge("netio_peer_credits", "Receive buffers that the subscriber has for us",
          [](Peer peer) { return std::uint64_t{peer.credits}; });
    gauge("netio_peer_least_credits", "The least of it since the last scrape",
          [](Peer peer) { return std::uint64_t{peer.least_credits}; });
    gauge("netio_peer_idle_seconds", "How long the subscriber has taken nothing of what waits",
          [](Peer peer) { return peer.idle; });
    gauge("netio_peer_gave_way", "1: it misses everything until it takes something",
          [](Peer peer) { return std::uint64_t{peer.gave_way}; });
    gauge("netio_peer_waited_for", "1: publishing waits for it",
          [](Peer peer) { return std::uint64_t{peer.waited_for}; });
    gauge("netio_peer_connected_seconds", "How long the subscriber has been here",
          [](Peer peer) { return peer.connected_for; });
    gauge("netio_peer_latency_median_seconds", "Of its frames, from the queue's end until sent",
          [](Peer peer) { return peer.latency.median; });
    gauge("netio_peer_latency_p99_seconds", "What one in a hundred of its frames exceeds",
          [](Peer peer) { return peer.latency.p99; });
    gauge("netio_peer_latency_longest_seconds", "The longest of all its frames",
          [](Peer peer) { return peer.latency.longest; });
    counter("netio_peer_frames_total", "Frames sent to the subscriber",
            [](Peer peer) { return peer.frames_sent; });
    counter("netio_peer_bytes_total", "Bytes of these frames",
            [](Peer peer) { return peer.bytes_sent; });
    counter("netio_peer_dropped_total", "Messages that the subscriber missed: it was too slow",
            [](Peer peer) { return peer.dropped; });
}

} // namespace

void write(const PublisherFigures& publisher, Exposition& text) {
    const auto& counters = publisher.counters;
    text.counter("netio_publisher_messages_total", "Messages accepted for at least one subscriber")
        .add(counters.messages);
    text.counter("netio_publisher_bytes_total", "Bytes of these messages").add(counters.bytes);
    text.counter("netio_publisher_unwanted_total", "Messages that nobody wanted")
        .add(counters.without_subscribers);
    text.counter("netio_publisher_again_total", "Refusals, as somebody had his share")
        .add(counters.again);
    text.counter("netio_publisher_held_up_seconds_total",
                 "How long publishing waited, from a refusal until it was worth trying")
        .add(publisher.snapshot.held_up);
    text.counter("netio_publisher_partial_total", "Publications that some could not take at once")
        .add(counters.partial);
    text.counter("netio_publisher_dropped_total", "Messages that slow subscribers missed")
        .add(counters.dropped);
    text.counter("netio_publisher_pages_total", "Pages sent to at least one subscriber")
        .add(counters.pages);
    Exposition::Family left = text.counter("netio_publisher_pages_left_total",
                                           "Of the pages of small messages, why they left: full, "
                                           "flush_time, idle subscribers, asked for");
    left.add({{"why", "full"}}, counters.pages_left.full);
    left.add({{"why", "time"}}, counters.pages_left.in_time);
    left.add({{"why", "idle"}}, counters.pages_left.idle);
    left.add({{"why", "asked"}}, counters.pages_left.asked);
    text.counter("netio_publisher_disconnected_total", "Subscribers that did not leave in order")
        .add(publisher.disconnected);
    text.counter("netio_publisher_rejected_total", "Peers rejected for what they were")
        .add(counters.rejected);
    text.counter("netio_publisher_accept_failed_total", "Peers rejected for want of means")
        .add(counters.accept_failed);
    text.counter("netio_publisher_requests_refused_total",
                 "Requests of subscribers that were refused: no room, policy, rights")
        .add(counters.requests_refused);
    text.gauge("netio_publisher_subscribers", "Subscribers that are connected")
        .add(std::uint64_t{publisher.snapshot.subscriber_count});
    Exposition::Family outcomes = text.counter(
        "netio_publication_outcomes_total",
        "Of lent publications, how many subscribers were sent them, missed them, had unsubscribed, "
        "or were lost with them");
    outcomes.add({{"outcome", "sent"}}, publisher.outcomes.sent);
    outcomes.add({{"outcome", "missed"}}, publisher.outcomes.missed);
    outcomes.add({{"outcome", "unsubscribed"}}, publisher.outcomes.unsubscribed);
    outcomes.add({{"outcome", "lost"}}, publisher.outcomes.lost);
    write_pool(publisher, text);
    text.histogram("netio_publisher_latency_seconds",
                   "Of frames to all subscribers, from the queue's end until they are sent",
                   publisher.snapshot.latency);
    write_peers(publisher.snapshot, text);
    text.gauge("netio_fids", "Fids that were published to; not all of them may be shown")
        .add(std::uint64_t{publisher.snapshot.fid_count});
    Exposition::Family messages = text.counter(
        "netio_fid_messages_total", "Messages of the fid that were published, wanted or not");
    for (const FidFigures& fid : publisher.snapshot.fids)
        messages.add({{"fid", to_string(fid.fid)}}, fid.messages);
    Exposition::Family again = text.counter(
        "netio_fid_again_total", "Refusals of a message of the fid, as somebody had his share");
    for (const FidFigures& fid : publisher.snapshot.fids)
        again.add({{"fid", to_string(fid.fid)}}, fid.again);
    Exposition::Family dropped =
        text.counter("netio_fid_dropped_total", "Of these, how often one was missed by somebody");
    for (const FidFigures& fid : publisher.snapshot.fids)
        dropped.add({{"fid", to_string(fid.fid)}}, fid.dropped);
}

void write(const SubscriptionsSnapshot& subscriber, Exposition& text) {
    const auto each = [&](Exposition::Family family, auto value) {
        for (const SourceFigures& one : subscriber.sources)
            family.add({{"publisher", one.name}}, std::uint64_t{value(one)});
    };
    each(text.counter("netio_subscriber_messages_total", "Messages that have arrived"),
         [](const SourceFigures& one) { return one.messages; });
    each(text.counter("netio_subscriber_bytes_total", "Bytes of these messages"),
         [](const SourceFigures& one) { return one.bytes; });
    each(text.counter("netio_subscriber_connections_total", "Connections to the publisher"),
         [](const SourceFigures& one) { return one.connections; });
    each(text.counter("netio_subscriber_pauses_total", "How often it has paused"),
         [](const SourceFigures& one) { return one.pauses; });
    each(text.counter("netio_subscriber_missed_total",
                      "Messages told missing: left out, or published between two connections"),
         [](const SourceFigures& one) { return one.missed; });
    each(text.gauge("netio_subscriber_connected", "1: it is connected"),
         [](const SourceFigures& one) { return one.connected; });
    each(text.gauge("netio_subscriber_paused", "1: it takes nothing at the moment"),
         [](const SourceFigures& one) { return one.paused; });
    text.gauge("netio_fids", "Fids that have arrived; not all of them may be shown")
        .add(std::uint64_t{subscriber.fid_count});
    const auto each_fid = [&](Exposition::Family family, std::uint64_t ArrivedFigures::*value) {
        for (const ArrivedFigures& row : subscriber.fids)
            family.add({{"fid", to_string(row.fid)}}, row.*value);
    };
    each_fid(text.counter("netio_fid_messages_total", "Messages of the fid"),
             &ArrivedFigures::messages);
    each_fid(text.counter("netio_fid_bytes_total", "Bytes of these messages"),
             &ArrivedFigures::bytes);
    each_fid(text.counter("netio_fid_missed_total",
                          "Messages told missing: left out, or published between two connections"),
             &ArrivedFigures::missed);
}

} // namespace apps
