// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/socket_metrics.hpp"

#include <string_view>

namespace apps {

void write(const SenderFigures& sender, Exposition& text) {
    const Exposition::Labels peer{{"peer", sender.peer}};
    const netio::SendSnapshot& now = sender.snapshot;
    text.counter("netio_sender_messages_total", "Messages accepted").add(peer, now.messages);
    text.counter("netio_sender_bytes_total", "Bytes of these messages").add(peer, now.bytes);
    text.counter("netio_sender_frames_total", "Frames that they were put into")
        .add(peer, now.frames);
    text.counter("netio_sender_again_total", "Refusals, as all memory was on its way")
        .add(peer, now.again);
    text.counter("netio_sender_connections_total", "Connections that were open, one behind another")
        .add(peer, now.connections);
    text.gauge("netio_sender_connected", "1: it is connected")
        .add(peer, std::uint64_t{now.connected});
    text.gauge("netio_sender_waiting", "Frames that wait for a receive buffer of the peer's")
        .add(peer, std::uint64_t{now.waiting});
    text.gauge("netio_sender_credits", "Receive buffers that the peer has for us")
        .add(peer, std::uint64_t{now.credits});
    text.gauge("netio_sender_unconfirmed", "Frames that the peer is not known to have taken")
        .add(peer, now.unconfirmed);
    text.histogram("netio_sender_latency_seconds",
                   "Of messages from the call, of pages from when they were to leave, until sent",
                   now.latency);
}

ReceiverFigures figures_of(const netio::ListenSocket& socket, std::size_t senders) {
    const std::vector<netio::ReceiveSocket*> peers = socket.peers();
    ReceiverFigures figures{
        .counters = socket.counters(), .senders = {}, .sender_count = peers.size()};
    for (const netio::ReceiveSocket* const each : peers) {
        if (figures.senders.size() == senders) break;
        figures.senders.push_back({.peer = each->peer_address(), .counters = each->counters()});
    }
    return figures;
}

void write(const ReceiverFigures& receiver, Exposition& text) {
    const netio::ListenSocket::Counters& counters = receiver.counters;
    text.counter("netio_receiver_messages_total", "Messages that have arrived")
        .add(counters.messages);
    text.counter("netio_receiver_bytes_total", "Bytes of these messages").add(counters.bytes);
    text.counter("netio_receiver_connected_total", "Senders that have connected")
        .add(counters.connected);
    text.counter("netio_receiver_rejected_total", "Peers rejected for what they were")
        .add(counters.rejected);
    text.counter("netio_receiver_accept_failed_total", "Peers rejected for want of means")
        .add(counters.accept_failed);
    text.gauge("netio_receiver_senders", "Senders that are connected")
        .add(std::uint64_t{receiver.sender_count});
    Exposition::Family messages =
        text.counter("netio_source_messages_total", "Messages of a sender that is connected");
    for (const auto& sender : receiver.senders)
        messages.add({{"peer", sender.peer}}, sender.counters.messages);
    Exposition::Family bytes = text.counter("netio_source_bytes_total", "Bytes of these messages");
    for (const auto& sender : receiver.senders)
        bytes.add({{"peer", sender.peer}}, sender.counters.bytes);
}

void write(std::span<const StreamFigures> streams, Exposition& text) {
    const auto counter = [&](std::string_view name, std::string_view help, auto value) {
        Exposition::Family family = text.counter(name, help);
        for (const StreamFigures& each : streams)
            family.add({{"peer", each.peer}}, std::uint64_t{value(each.counters)});
    };
    using Counters = netio::stream::StreamSocket::Counters;
    counter("netio_stream_sent_direct_bytes_total", "Sent into memory that the peer had offered",
            [](const Counters& all) { return all.sent.direct_bytes; });
    counter("netio_stream_sent_indirect_bytes_total", "Sent into the peer's ring",
            [](const Counters& all) { return all.sent.indirect_bytes; });
    counter("netio_stream_received_direct_bytes_total", "Received where they were wanted",
            [](const Counters& all) { return all.received.direct_bytes; });
    counter("netio_stream_received_indirect_bytes_total", "Received into the ring, and copied",
            [](const Counters& all) { return all.received.indirect_bytes; });
    counter("netio_stream_phase_switches_total", "Between sending directly and into the ring",
            [](const Counters& all) { return all.sent.phase_switches; });
    counter("netio_stream_adverts_total", "Receives that were offered to the peer",
            [](const Counters& all) { return all.received.adverts; });
    counter("netio_stream_waits_for_ring_total", "Waits for space in the peer's ring",
            [](const Counters& all) { return all.sent.waits_for_ring; });
    counter("netio_stream_waits_for_advert_total", "Waits for a receive of the peer's",
            [](const Counters& all) { return all.sent.waits_for_advert; });
    counter("netio_stream_waits_for_capacity_total", "Waits for a credit or a place to send from",
            [](const Counters& all) { return all.waits_for_capacity; });
    const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
        Exposition::Family family = text.gauge(name, help);
        for (const StreamFigures& each : streams)
            family.add({{"peer", each.peer}}, value(each));
    };
    gauge("netio_stream_waiting", "Bytes handed to send() that are not on their way",
          [](const StreamFigures& each) { return each.queued_bytes; });
    gauge("netio_stream_latency_median_seconds", "Of sends, from the call until all was on its way",
          [](const StreamFigures& each) { return each.counters.latency.quantile(0.5); });
    gauge("netio_stream_latency_p99_seconds", "What one in a hundred of them exceeds",
          [](const StreamFigures& each) { return each.counters.latency.quantile(0.99); });
}

} // namespace apps
