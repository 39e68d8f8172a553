// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/families.hpp"

#include "apps/common/logging.hpp"
#include "apps/common/report.hpp"
#include "netio/base/check.hpp"
#include "netio/base/version.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace apps {
namespace {

// Buckets from 1 us to half a minute.
constexpr unsigned first_exponent = 10;
constexpr unsigned last_exponent = 35;

// The format is UTF-8 and defines these escapes only; printable() replaces other control
// characters.
std::string escaped_value(std::string_view value, bool quoted) {
    std::string text;
    for (const char each : printable(value, 1024, Lines::several)) {
        if (each == '\\') {
            text += "\\\\";
        } else if (each == '\n') {
            text += "\\n";
        } else if (each == '"' && quoted) {
            text += "\\\"";
        } else {
            text += each;
        }
    }
    return text;
}

std::string seconds(std::int64_t nanoseconds) {
    return fmt::format("{:.9g}", static_cast<double>(nanoseconds) * 1e-9);
}

} // namespace

void Exposition::Family::begin(Labels labels, std::string_view suffix) {
    text_ += name_;
    text_ += suffix;
    char before = '{';
    for (const auto& [label, value] : labels) {
        text_ += fmt::format("{}{}=\"{}\"", before, label, escaped_value(value, true));
        before = ',';
    }
    if (before == ',') text_ += '}';
    text_ += ' ';
}

Exposition::Family& Exposition::Family::add(Labels labels, std::uint64_t value) {
    begin(labels);
    text_ += fmt::format("{}\n", value);
    return *this;
}

Exposition::Family& Exposition::Family::add(Labels labels, netio::Duration value) {
    begin(labels);
    text_ += seconds(value.count()) + '\n';
    return *this;
}

Exposition::Family Exposition::family(std::string_view name, std::string_view type,
                                      std::string_view help) {
    NETIO_CHECK(name.ends_with("_total") == (type == "counter"));
    text_ +=
        fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, escaped_value(help, false), type);
    return Family{text_, name};
}

Exposition::Family Exposition::counter(std::string_view name, std::string_view help) {
    return family(name, "counter", help);
}

Exposition::Family Exposition::gauge(std::string_view name, std::string_view help) {
    return family(name, "gauge", help);
}

void Exposition::histogram(std::string_view name, std::string_view help,
                           const netio::LatencyHistogram& values) {
    Family family = this->family(name, "histogram", help);
    for (unsigned exponent = first_exponent; exponent <= last_exponent; ++exponent) {
        family.begin({{"le", seconds(std::int64_t{1} << exponent)}}, "_bucket");
        text_ += fmt::format("{}\n", values.count_below_power(exponent));
    }
    family.begin({{"le", "+Inf"}}, "_bucket");
    text_ += fmt::format("{}\n{}_sum {}\n{}_count {}\n", values.count(), name,
                         seconds(values.sum().count()), name, values.count());
}

LoopMetrics take_snapshot(netio::EventLoop& loop) {
    return {.turns = loop.turns().count(),
            .waits = loop.wait_count(),
            .longest_turn = loop.turns().take_longest_lately(),
            .stalled = loop.stalled(),
            .log_lines_left_out = lines_left_out_of_log().load()};
}

void write(const LoopMetrics& loop, Exposition& text) {
    text.gauge("netio_info", "Version and provider of this program")
        .add({{"version", netio::version()}}, std::uint64_t{1});
    text.counter("netio_loop_turns_total", "Turns of the event loop that did some work")
        .add(loop.turns);
    text.counter("netio_loop_waits_total", "Times that the event loop went to sleep")
        .add(loop.waits);
    text.gauge("netio_loop_longest_turn_seconds", "The longest turn since the last scrape")
        .add(loop.longest_turn);
    text.counter("netio_loop_stalled_seconds_total",
                 "Time in which the event loop did not poll for events")
        .add(loop.stalled);
    text.counter("netio_log_lines_left_out_total",
                 "Lines of the log that were lost because the reader was slow or writing failed")
        .add(loop.log_lines_left_out);
}

void write(std::span<const RdmaDevice> devices, Exposition& text) {
    if (devices.empty()) return;
    const auto each_port = [&](auto visit) {
        for (const RdmaDevice& device : devices)
            for (const RdmaPort& port : device.ports)
                visit(fmt::format("{}/{}", device.name, port.number), port);
    };
    Exposition::Family active = text.gauge("netio_device_active", "1: the port is active");
    each_port([&](const std::string& name, const RdmaPort& port) {
        active.add({{"port", name}, {"link_layer", port.link_layer}, {"rate", port.rate}},
                   std::uint64_t{port.state == "ACTIVE"});
    });
    const auto sums = [&](std::string_view name, std::string_view help, Trouble trouble) {
        Exposition::Family family = text.counter(name, help);
        each_port([&](const std::string& port_name, const RdmaPort& port) {
            family.add({{"port", port_name}}, count_of(port.counters, trouble));
        });
    };
    sums("netio_device_port_errors_total", "Packets damaged, lost or discarded on the port's link",
         Trouble::port_error);
    sums("netio_device_receiver_not_ready_total", "Messages that found no receive buffer",
         Trouble::receiver_not_ready);
    sums("netio_device_retransmissions_total",
         "Packets that were sent again or arrived out of order", Trouble::retransmission);
    Exposition::Family all = text.counter("netio_device_counter_total",
                                          "Counters of the port, by their names in the driver");
    each_port([&](const std::string& port_name, const RdmaPort& port) {
        for (const auto& [name, value] : port.counters)
            all.add({{"port", port_name}, {"counter", name}}, value);
    });
}

namespace {

using netio::pubsub::HistorySnapshot;
using netio::pubsub::PublishedFidSnapshot;
using netio::pubsub::PublisherSnapshot;
using netio::pubsub::ReceivedFidSnapshot;
using netio::pubsub::RemotePublisherSnapshot;
using netio::pubsub::SubscriberSnapshot;
using netio::pubsub::SubscriptionsSnapshot;

void write_pool(const PublisherMetrics& publisher, Exposition& text) {
    const PublisherSnapshot& snapshot = publisher.snapshot;
    const Exposition::Labels unit{{"unit", publisher.unit}};
    text.gauge("netio_publisher_pool", "Size of the pool for messages that are queued or in flight")
        .add(unit, std::uint64_t{snapshot.pool});
    text.gauge("netio_publisher_free", "Free part of the pool")
        .add(unit, std::uint64_t{snapshot.free});
    text.gauge("netio_publisher_least_free", "The least of it since the last scrape")
        .add(unit, std::uint64_t{snapshot.least_free});
}

void write_history(const HistorySnapshot& history, Exposition& text) {
    if (history.limit == 0) return;
    text.gauge("netio_publisher_history_limit_bytes", "Memory for kept messages")
        .add({}, std::uint64_t{history.limit});
    text.gauge("netio_publisher_history_bytes", "Memory of the messages that are kept")
        .add({}, std::uint64_t{history.bytes});
    text.gauge("netio_publisher_history_messages", "Messages that are kept for late subscribers")
        .add({}, std::uint64_t{history.messages});
    text.gauge("netio_publisher_history_late", "Subscriptions that are being sent kept messages")
        .add({}, std::uint64_t{history.late});
}

// Writes one sample per subscriber for each name.
template <class Value>
void write_peers(Exposition::Family family, const PublisherSnapshot& snapshot, Value value) {
    for (const SubscriberSnapshot& each : snapshot.subscribers) {
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
    using Peer = const SubscriberSnapshot&;
    gauge("netio_peer_waiting", "Part of the pool queued for the subscriber",
          [](Peer peer) { return std::uint64_t{peer.waiting}; });
    gauge("netio_peer_most_waiting", "Maximum of the queued part since the last scrape",
          [](Peer peer) { return std::uint64_t{peer.most_waiting}; });
    gauge("netio_peer_posted", "Part of the pool in flight to the subscriber",
          [](Peer peer) { return std::uint64_t{peer.posted}; });
    gauge("netio_peer_credits", "Receive buffers that the subscriber has for this publisher",
          [](Peer peer) { return std::uint64_t{peer.credits}; });
    gauge("netio_peer_least_credits", "The least of it since the last scrape",
          [](Peer peer) { return std::uint64_t{peer.least_credits}; });
    gauge("netio_peer_idle_seconds", "Time without progress while messages are queued",
          [](Peer peer) { return peer.idle; });
    gauge("netio_peer_gave_way", "1: all its messages are dropped until it makes progress",
          [](Peer peer) { return std::uint64_t{peer.reclaimed}; });
    gauge("netio_peer_waited_for", "1: publishing is blocked by it",
          [](Peer peer) { return std::uint64_t{peer.waited_for}; });
    gauge("netio_peer_connected_seconds", "Time since the subscriber connected",
          [](Peer peer) { return peer.connected_for; });
    gauge("netio_peer_latency_median_seconds",
          "Latency of its frames, from entering the queue until sent",
          [](Peer peer) { return peer.latency.median; });
    gauge("netio_peer_latency_p99_seconds", "What one in a hundred of its frames exceeds",
          [](Peer peer) { return peer.latency.p99; });
    gauge("netio_peer_latency_longest_seconds", "The longest latency of its frames",
          [](Peer peer) { return peer.latency.longest; });
    counter("netio_peer_frames_total", "Frames sent to the subscriber",
            [](Peer peer) { return peer.frames_sent; });
    counter("netio_peer_bytes_total", "Bytes of these frames",
            [](Peer peer) { return peer.bytes_sent; });
    counter("netio_peer_dropped_total", "Messages dropped because the subscriber was slow",
            [](Peer peer) { return peer.dropped; });
}

} // namespace

void write(const PublisherMetrics& publisher, Exposition& text) {
    const auto& counters = publisher.counters;
    text.counter("netio_publisher_messages_total", "Messages accepted for at least one subscriber")
        .add(counters.messages);
    text.counter("netio_publisher_bytes_total", "Bytes of these messages").add(counters.bytes);
    text.counter("netio_publisher_unwanted_total", "Messages without subscribers")
        .add(counters.without_subscribers);
    text.counter("netio_publisher_again_total",
                 "Refusals because a subscriber reached its queue limit")
        .add(counters.again);
    text.counter("netio_publisher_held_up_seconds_total",
                 "Time in which publishing was blocked, from a refusal until a retry could succeed")
        .add(publisher.snapshot.blocked_time);
    text.counter("netio_publisher_partial_total",
                 "Publications that some subscribers could not accept immediately")
        .add(counters.partial);
    text.counter("netio_publisher_dropped_total", "Messages dropped for slow subscribers")
        .add(counters.dropped);
    text.counter("netio_publisher_pages_total", "Pages sent to at least one subscriber")
        .add(counters.pages);
    Exposition::Family left = text.counter("netio_publisher_pages_left_total",
                                           "Pages of small messages, by the reason for sending "
                                           "them: full, flush_time, idle subscribers, requested");
    left.add({{"why", "full"}}, counters.pages_left.full);
    left.add({{"why", "time"}}, counters.pages_left.in_time);
    left.add({{"why", "idle"}}, counters.pages_left.idle);
    left.add({{"why", "asked"}}, counters.pages_left.asked);
    text.counter("netio_publisher_disconnected_total", "Subscribers that did not close in order")
        .add(publisher.disconnected);
    text.counter("netio_publisher_rejected_total",
                 "Peers rejected because of their requests, options or rights")
        .add(counters.rejected);
    text.counter("netio_publisher_accept_failed_total",
                 "Peers rejected because memory or descriptors were missing")
        .add(counters.accept_failed);
    text.counter("netio_publisher_requests_refused_total",
                 "Requests of subscribers that were refused: limit, policy, rights")
        .add(counters.requests_refused);
    text.gauge("netio_publisher_subscribers", "Subscribers that are connected")
        .add(std::uint64_t{publisher.snapshot.subscriber_count});
    Exposition::Family outcomes =
        text.counter("netio_publication_outcomes_total",
                     "Zero-copy publications, counted per subscriber: sent, dropped, unsubscribed "
                     "before, or lost with the connection");
    outcomes.add({{"outcome", "sent"}}, publisher.outcomes.sent);
    outcomes.add({{"outcome", "missed"}}, publisher.outcomes.dropped);
    outcomes.add({{"outcome", "unsubscribed"}}, publisher.outcomes.unsubscribed);
    outcomes.add({{"outcome", "lost"}}, publisher.outcomes.lost);
    write_pool(publisher, text);
    write_history(publisher.snapshot.history, text);
    text.histogram("netio_publisher_latency_seconds",
                   "Latency of frames to all subscribers, from entering the queue until sent",
                   publisher.snapshot.latency);
    write_peers(publisher.snapshot, text);
    text.gauge("netio_fids", "Fids that were published; possibly more than are shown")
        .add(std::uint64_t{publisher.snapshot.fid_count});
    Exposition::Family messages =
        text.counter("netio_fid_messages_total",
                     "Messages of the fid that were published, with or without subscribers");
    for (const PublishedFidSnapshot& fid : publisher.snapshot.fids)
        messages.add({{"fid", to_string(fid.fid)}}, fid.messages);
    Exposition::Family again = text.counter(
        "netio_fid_again_total",
        "Refusals of messages of the fid because a subscriber reached its queue limit");
    for (const PublishedFidSnapshot& fid : publisher.snapshot.fids)
        again.add({{"fid", to_string(fid.fid)}}, fid.again);
    Exposition::Family dropped =
        text.counter("netio_fid_dropped_total",
                     "Messages of the fid dropped for a subscriber, counted per subscriber");
    for (const PublishedFidSnapshot& fid : publisher.snapshot.fids)
        dropped.add({{"fid", to_string(fid.fid)}}, fid.dropped);
}

void write(const SubscriptionsSnapshot& subscriber, Exposition& text) {
    const auto each = [&](Exposition::Family family, auto value) {
        for (const RemotePublisherSnapshot& one : subscriber.publishers)
            family.add({{"publisher", one.name}}, std::uint64_t{value(one)});
    };
    each(text.counter("netio_subscriber_messages_total", "Messages that have arrived"),
         [](const RemotePublisherSnapshot& one) { return one.messages; });
    each(text.counter("netio_subscriber_bytes_total", "Bytes of these messages"),
         [](const RemotePublisherSnapshot& one) { return one.bytes; });
    each(text.counter("netio_subscriber_connections_total", "Connections to the publisher"),
         [](const RemotePublisherSnapshot& one) { return one.connections; });
    each(text.counter("netio_subscriber_pauses_total", "Times that the subscriber paused"),
         [](const RemotePublisherSnapshot& one) { return one.pauses; });
    each(text.counter("netio_subscriber_missed_total",
                      "Messages reported as lost: dropped, or published while not connected"),
         [](const RemotePublisherSnapshot& one) { return one.lost; });
    each(text.gauge("netio_subscriber_connected", "1: it is connected"),
         [](const RemotePublisherSnapshot& one) { return one.connected; });
    each(text.gauge("netio_subscriber_paused", "1: it is paused"),
         [](const RemotePublisherSnapshot& one) { return one.paused; });
    each(text.gauge("netio_subscriber_kept_buffers",
                    "Receive buffers that this program keeps, and slabs of small messages"),
         [](const RemotePublisherSnapshot& one) { return one.kept.buffers; });
    each(text.gauge("netio_subscriber_kept_bytes", "Bytes of these receive buffers"),
         [](const RemotePublisherSnapshot& one) { return one.kept.bytes; });
    Exposition::Family oldest =
        text.gauge("netio_subscriber_kept_oldest_seconds", "Age of the oldest kept receive buffer");
    for (const RemotePublisherSnapshot& one : subscriber.publishers)
        oldest.add({{"publisher", one.name}}, one.kept.oldest);
    text.gauge("netio_fids", "Fids that have arrived; possibly more than are shown")
        .add(std::uint64_t{subscriber.fid_count});
    const auto each_fid = [&](Exposition::Family family,
                              std::uint64_t ReceivedFidSnapshot::*value) {
        for (const ReceivedFidSnapshot& row : subscriber.fids)
            family.add({{"fid", to_string(row.fid)}}, row.*value);
    };
    each_fid(text.counter("netio_fid_messages_total", "Messages of the fid"),
             &ReceivedFidSnapshot::messages);
    each_fid(text.counter("netio_fid_bytes_total", "Bytes of these messages"),
             &ReceivedFidSnapshot::bytes);
    each_fid(text.counter("netio_fid_missed_total",
                          "Messages reported as lost: dropped, or published while not connected"),
             &ReceivedFidSnapshot::lost);
}

void write(std::span<const OneWayMetrics> publishers, Exposition& text) {
    if (publishers.empty()) return;
    const auto each = [&](std::string_view name, std::string_view help,
                          netio::Duration OneWayMetrics::*value) {
        Exposition::Family family = text.gauge(name, help);
        for (const OneWayMetrics& one : publishers)
            family.add({{"publisher", one.publisher}}, one.*value);
    };
    each("netio_subscriber_one_way_median_seconds",
         "Time from the publication of a message to its arrival", &OneWayMetrics::median);
    each("netio_subscriber_one_way_p99_seconds", "What one in a hundred of them exceeds",
         &OneWayMetrics::p99);
    each("netio_subscriber_clock_offset_seconds",
         "This machine's clock minus the publisher's, estimated", &OneWayMetrics::clock_offset);
    each("netio_subscriber_clock_offset_error_seconds", "Half the round trip of a request",
         &OneWayMetrics::clock_offset_error);
}

void write(const SenderMetrics& sender, Exposition& text) {
    const Exposition::Labels peer{{"peer", sender.peer}};
    const netio::SendSnapshot& now = sender.snapshot;
    text.counter("netio_sender_messages_total", "Messages accepted").add(peer, now.messages);
    text.counter("netio_sender_bytes_total", "Bytes of these messages").add(peer, now.bytes);
    text.counter("netio_sender_frames_total", "Frames with these messages").add(peer, now.frames);
    text.counter("netio_sender_again_total", "Refusals because all memory was in flight")
        .add(peer, now.again);
    text.counter("netio_sender_connections_total", "Connections, one after another")
        .add(peer, now.connections);
    text.gauge("netio_sender_connected", "1: it is connected")
        .add(peer, std::uint64_t{now.connected});
    text.gauge("netio_sender_waiting", "Frames that wait for a receive buffer of the peer")
        .add(peer, std::uint64_t{now.waiting});
    text.gauge("netio_sender_credits", "Receive buffers that the peer has for this sender")
        .add(peer, std::uint64_t{now.credits});
    text.gauge("netio_sender_unconfirmed", "Frames that the peer has not confirmed")
        .add(peer, now.unconfirmed);
    text.histogram(
        "netio_sender_latency_seconds",
        "Latency until sent: of messages from the call, of pages from when they were due",
        now.latency);
}

ReceiverMetrics metrics_of(const netio::ListenSocket& socket, std::size_t senders) {
    const std::vector<netio::ReceiveSocket*> peers = socket.peers();
    ReceiverMetrics metrics{.counters = socket.counters(),
                            .senders = {},
                            .sender_count = peers.size(),
                            .kept = socket.kept()};
    for (const netio::ReceiveSocket* const each : peers) {
        if (metrics.senders.size() == senders) break;
        metrics.senders.push_back({.peer = each->peer_address(), .counters = each->counters()});
    }
    return metrics;
}

void write(const ReceiverMetrics& receiver, Exposition& text) {
    const netio::ListenSocket::Counters& counters = receiver.counters;
    text.counter("netio_receiver_messages_total", "Messages that have arrived")
        .add(counters.messages);
    text.counter("netio_receiver_bytes_total", "Bytes of these messages").add(counters.bytes);
    text.counter("netio_receiver_connected_total", "Senders that have connected")
        .add(counters.connected);
    text.counter("netio_receiver_rejected_total",
                 "Peers rejected because of their requests, options or rights")
        .add(counters.rejected);
    text.counter("netio_receiver_accept_failed_total",
                 "Peers rejected because memory or descriptors were missing")
        .add(counters.accept_failed);
    text.gauge("netio_receiver_senders", "Senders that are connected")
        .add(std::uint64_t{receiver.sender_count});
    text.gauge("netio_receiver_kept_buffers", "Receive buffers that this program keeps")
        .add(std::uint64_t{receiver.kept.buffers});
    text.gauge("netio_receiver_kept_bytes", "Bytes of these receive buffers")
        .add(std::uint64_t{receiver.kept.bytes});
    text.gauge("netio_receiver_kept_oldest_seconds", "Age of the oldest kept receive buffer")
        .add(receiver.kept.oldest);
    Exposition::Family messages =
        text.counter("netio_source_messages_total", "Messages of a sender that is connected");
    for (const auto& sender : receiver.senders)
        messages.add({{"peer", sender.peer}}, sender.counters.messages);
    Exposition::Family bytes = text.counter("netio_source_bytes_total", "Bytes of these messages");
    for (const auto& sender : receiver.senders)
        bytes.add({{"peer", sender.peer}}, sender.counters.bytes);
}

void write(std::span<const StreamMetrics> streams, Exposition& text) {
    const auto counter = [&](std::string_view name, std::string_view help, auto value) {
        Exposition::Family family = text.counter(name, help);
        for (const StreamMetrics& each : streams)
            family.add({{"peer", each.peer}}, std::uint64_t{value(each.counters)});
    };
    using Counters = netio::stream::StreamSocket::Counters;
    counter("netio_stream_sent_direct_bytes_total",
            "Bytes sent directly into memory that the peer had advertised",
            [](const Counters& all) { return all.sent.direct_bytes; });
    counter("netio_stream_sent_indirect_bytes_total", "Bytes sent into the peer's ring",
            [](const Counters& all) { return all.sent.indirect_bytes; });
    counter("netio_stream_received_direct_bytes_total",
            "Bytes received directly into the user's memory",
            [](const Counters& all) { return all.received.direct_bytes; });
    counter("netio_stream_received_indirect_bytes_total",
            "Bytes received into the ring, and copied",
            [](const Counters& all) { return all.received.indirect_bytes; });
    counter("netio_stream_phase_switches_total",
            "Switches between direct and indirect (ring) sending",
            [](const Counters& all) { return all.sent.phase_switches; });
    counter("netio_stream_adverts_total", "Receives that were advertised to the peer",
            [](const Counters& all) { return all.received.adverts; });
    counter("netio_stream_waits_for_ring_total", "Waits for space in the peer's ring",
            [](const Counters& all) { return all.sent.waits_for_ring; });
    counter("netio_stream_waits_for_advert_total", "Waits for an advertised receive of the peer",
            [](const Counters& all) { return all.sent.waits_for_advert; });
    counter("netio_stream_waits_for_capacity_total", "Waits for a credit or a send buffer",
            [](const Counters& all) { return all.waits_for_capacity; });
    const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
        Exposition::Family family = text.gauge(name, help);
        for (const StreamMetrics& each : streams)
            family.add({{"peer", each.peer}}, value(each));
    };
    gauge("netio_stream_waiting", "Bytes passed to send() that are not in flight yet",
          [](const StreamMetrics& each) { return each.queued_bytes; });
    gauge("netio_stream_latency_median_seconds",
          "Latency of sends, from the call until all bytes were in flight",
          [](const StreamMetrics& each) { return each.counters.latency.quantile(0.5); });
    gauge("netio_stream_latency_p99_seconds", "What one in a hundred of them exceeds",
          [](const StreamMetrics& each) { return each.counters.latency.quantile(0.99); });
}

} // namespace apps
