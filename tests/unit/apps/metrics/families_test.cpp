// SPDX-License-Identifier: Apache-2.0

// Every metric has a different number here, so that swapped metrics are noticed.

#include "apps/metrics/families.hpp"

#include "apps/common/logging.hpp"
#include "netio/base/version.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace apps::families_test {
namespace {

using std::chrono::seconds;

// The samples; for a histogram its sum and count.
std::string samples(const auto& metrics) {
    Exposition text;
    write(metrics, text);
    std::istringstream lines{std::move(text).take()};
    std::string all = "\n";
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('#') && line.find("_bucket{") == std::string::npos)
            all += line + '\n';
    }
    return all;
}

netio::LatencyHistogram one_of(seconds time) {
    netio::LatencyHistogram latency;
    latency.add(time);
    return latency;
}

TEST(ShownMetrics, AreDistinctForAPublisher) {
    PublisherMetrics publisher{.unit = "bytes",
                               .counters = {.messages = 1,
                                            .without_subscribers = 2,
                                            .again = 3,
                                            .partial = 4,
                                            .dropped = 5,
                                            .pages = 6,
                                            .pages_left = {7, 8, 9, 10},
                                            .bytes = 11,
                                            .subscribers = 12,
                                            .rejected = 13,
                                            .accept_failed = 14,
                                            .requests_refused = 27},
                               .snapshot = {.pool = 15,
                                            .free = 16,
                                            .least_free = 17,
                                            .history = {28, 29, 30, 31},
                                            .blocked_time = seconds{18},
                                            .latency = one_of(seconds{19}),
                                            .subscribers = {},
                                            .subscriber_count = 20,
                                            .fids = {},
                                            .fid_count = 21},
                               .disconnected = 22,
                               .outcomes = {23, 24, 25, 26}};
    EXPECT_EQ(samples(publisher), R"(
netio_publisher_messages_total 1
netio_publisher_bytes_total 11
netio_publisher_unwanted_total 2
netio_publisher_again_total 3
netio_publisher_held_up_seconds_total 18
netio_publisher_partial_total 4
netio_publisher_dropped_total 5
netio_publisher_pages_total 6
netio_publisher_pages_left_total{why="full"} 7
netio_publisher_pages_left_total{why="time"} 8
netio_publisher_pages_left_total{why="idle"} 9
netio_publisher_pages_left_total{why="asked"} 10
netio_publisher_disconnected_total 22
netio_publisher_rejected_total 13
netio_publisher_accept_failed_total 14
netio_publisher_requests_refused_total 27
netio_publisher_subscribers 20
netio_publication_outcomes_total{outcome="sent"} 23
netio_publication_outcomes_total{outcome="missed"} 24
netio_publication_outcomes_total{outcome="unsubscribed"} 25
netio_publication_outcomes_total{outcome="lost"} 26
netio_publisher_pool{unit="bytes"} 15
netio_publisher_free{unit="bytes"} 16
netio_publisher_least_free{unit="bytes"} 17
netio_publisher_history_limit_bytes 28
netio_publisher_history_bytes 29
netio_publisher_history_messages 30
netio_publisher_history_late 31
netio_publisher_latency_seconds_sum 19
netio_publisher_latency_seconds_count 1
netio_fids 21
)");
}

TEST(ShownMetrics, AreDistinctForASubscriberOfAPublisher) {
    PublisherMetrics publisher{.unit = "bytes", .counters = {}, .snapshot = {}};
    const std::string nobody = samples(publisher);
    publisher.snapshot.subscribers = {
        {.id = netio::pubsub::SubscriberId{std::uint64_t{40} << 32 | 3},
         .address = "a",
         .connected_for = seconds{1},
         .waiting = 2,
         .most_waiting = 3,
         .posted = 4,
         .credits = 5,
         .least_credits = 6,
         .frames_sent = 7,
         .bytes_sent = 8,
         .dropped = 9,
         .idle = seconds{10},
         .reclaimed = true,
         .waited_for = false,
         .latency = {.median = seconds{11}, .p99 = seconds{12}, .longest = seconds{13}}}};
    const std::string shown = R"(
netio_peer_waiting{peer="a",id="40"} 2
netio_peer_most_waiting{peer="a",id="40"} 3
netio_peer_posted{peer="a",id="40"} 4
netio_peer_credits{peer="a",id="40"} 5
netio_peer_least_credits{peer="a",id="40"} 6
netio_peer_idle_seconds{peer="a",id="40"} 10
netio_peer_gave_way{peer="a",id="40"} 1
netio_peer_waited_for{peer="a",id="40"} 0
netio_peer_connected_seconds{peer="a",id="40"} 1
netio_peer_latency_median_seconds{peer="a",id="40"} 11
netio_peer_latency_p99_seconds{peer="a",id="40"} 12
netio_peer_latency_longest_seconds{peer="a",id="40"} 13
netio_peer_frames_total{peer="a",id="40"} 7
netio_peer_bytes_total{peer="a",id="40"} 8
netio_peer_dropped_total{peer="a",id="40"} 9
)";
    const std::string with_one = samples(publisher);
    const auto at = with_one.find("netio_peer_");
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ('\n' + with_one.substr(at, shown.size() - 1), shown);
    EXPECT_EQ(with_one.size(), nobody.size() + shown.size() - 1) << "and no other metric";
    publisher.snapshot.subscribers[0].reclaimed = false;
    publisher.snapshot.subscribers[0].waited_for = true;
    EXPECT_NE(samples(publisher).find("netio_peer_waited_for{peer=\"a\",id=\"40\"} 1\n"),
              std::string::npos);
}

TEST(ShownMetrics, AreDistinctForAPublishedFid) {
    PublisherMetrics publisher{.unit = "bytes", .counters = {}, .snapshot = {}};
    publisher.snapshot.fids = {
        {.fid = netio::pubsub::Fid{10}, .messages = 1, .again = 2, .dropped = 3},
        {.fid = netio::pubsub::Fid{11}, .messages = 4, .again = 5, .dropped = 6}};
    const std::string all = samples(publisher);
    EXPECT_EQ(all.substr(all.find("netio_fid_")), R"(netio_fid_messages_total{fid="0xa"} 1
netio_fid_messages_total{fid="0xb"} 4
netio_fid_again_total{fid="0xa"} 2
netio_fid_again_total{fid="0xb"} 5
netio_fid_dropped_total{fid="0xa"} 3
netio_fid_dropped_total{fid="0xb"} 6
)");
}

TEST(ShownMetrics, AreDistinctForTheLatencyOfAPublisher) {
    const std::vector<OneWayMetrics> one_way{{.publisher = "a",
                                              .median = seconds{1},
                                              .p99 = seconds{2},
                                              .clock_offset = seconds{-3},
                                              .clock_offset_error = seconds{4}}};
    EXPECT_EQ(samples(std::span<const OneWayMetrics>{one_way}), R"(
netio_subscriber_one_way_median_seconds{publisher="a"} 1
netio_subscriber_one_way_p99_seconds{publisher="a"} 2
netio_subscriber_clock_offset_seconds{publisher="a"} -3
netio_subscriber_clock_offset_error_seconds{publisher="a"} 4
)");
}

TEST(ShownMetrics, AreDistinctForASubscriber) {
    const netio::pubsub::SubscriptionsSnapshot snapshot{
        .publishers = {{.name = "a",
                        .connected = true,
                        .paused = false,
                        .messages = 1,
                        .bytes = 2,
                        .lost = 3,
                        .connections = 4,
                        .pauses = 5,
                        .kept = {.buffers = 15, .bytes = 16, .oldest = seconds{17}}},
                       {.name = "b",
                        .connected = false,
                        .paused = true,
                        .messages = 6,
                        .bytes = 7,
                        .lost = 8,
                        .connections = 9,
                        .pauses = 10}},
        .fids = {{.fid = netio::pubsub::Fid{10}, .messages = 11, .bytes = 12, .lost = 13}},
        .fid_count = 14};
    EXPECT_EQ(samples(snapshot), R"(
netio_subscriber_messages_total{publisher="a"} 1
netio_subscriber_messages_total{publisher="b"} 6
netio_subscriber_bytes_total{publisher="a"} 2
netio_subscriber_bytes_total{publisher="b"} 7
netio_subscriber_connections_total{publisher="a"} 4
netio_subscriber_connections_total{publisher="b"} 9
netio_subscriber_pauses_total{publisher="a"} 5
netio_subscriber_pauses_total{publisher="b"} 10
netio_subscriber_missed_total{publisher="a"} 3
netio_subscriber_missed_total{publisher="b"} 8
netio_subscriber_connected{publisher="a"} 1
netio_subscriber_connected{publisher="b"} 0
netio_subscriber_paused{publisher="a"} 0
netio_subscriber_paused{publisher="b"} 1
netio_subscriber_kept_buffers{publisher="a"} 15
netio_subscriber_kept_buffers{publisher="b"} 0
netio_subscriber_kept_bytes{publisher="a"} 16
netio_subscriber_kept_bytes{publisher="b"} 0
netio_subscriber_kept_oldest_seconds{publisher="a"} 17
netio_subscriber_kept_oldest_seconds{publisher="b"} 0
netio_fids 14
netio_fid_messages_total{fid="0xa"} 11
netio_fid_bytes_total{fid="0xa"} 12
netio_fid_missed_total{fid="0xa"} 13
)");
}

TEST(ShownMetrics, AreDistinctForASender) {
    const SenderMetrics sender{.peer = "a",
                               .snapshot = {.connected = true,
                                            .messages = 2,
                                            .bytes = 3,
                                            .frames = 4,
                                            .again = 5,
                                            .connections = 6,
                                            .latency = one_of(seconds{7}),
                                            .waiting = 8,
                                            .credits = 9,
                                            .unconfirmed = 10}};
    EXPECT_EQ(samples(sender), R"(
netio_sender_messages_total{peer="a"} 2
netio_sender_bytes_total{peer="a"} 3
netio_sender_frames_total{peer="a"} 4
netio_sender_again_total{peer="a"} 5
netio_sender_connections_total{peer="a"} 6
netio_sender_connected{peer="a"} 1
netio_sender_waiting{peer="a"} 8
netio_sender_credits{peer="a"} 9
netio_sender_unconfirmed{peer="a"} 10
netio_sender_latency_seconds_sum 7
netio_sender_latency_seconds_count 1
)");
}

TEST(ShownMetrics, AreDistinctForAReceiver) {
    const ReceiverMetrics receiver{
        .counters = {.messages = 1, .bytes = 2, .connected = 3, .rejected = 4, .accept_failed = 5},
        .senders = {{.peer = "a", .counters = {.messages = 6, .bytes = 7}}},
        .sender_count = 8,
        .kept = {.buffers = 9, .bytes = 10, .oldest = seconds{11}}};
    EXPECT_EQ(samples(receiver), R"(
netio_receiver_messages_total 1
netio_receiver_bytes_total 2
netio_receiver_connected_total 3
netio_receiver_rejected_total 4
netio_receiver_accept_failed_total 5
netio_receiver_senders 8
netio_receiver_kept_buffers 9
netio_receiver_kept_bytes 10
netio_receiver_kept_oldest_seconds 11
netio_source_messages_total{peer="a"} 6
netio_source_bytes_total{peer="a"} 7
)");
}

TEST(ShownMetrics, AreDistinctForAStream) {
    StreamMetrics stream{.peer = "a", .counters = {}, .queued_bytes = 12};
    stream.counters.sent = {.direct_bytes = 1,
                            .indirect_bytes = 2,
                            .phase_switches = 3,
                            .waits_for_ring = 4,
                            .waits_for_advert = 5};
    stream.counters.received = {
        .direct_bytes = 6, .indirect_bytes = 7, .phase_switches = 8, .adverts = 9};
    stream.counters.waits_for_capacity = 10;
    EXPECT_EQ(samples(std::span<const StreamMetrics>{&stream, 1}), R"(
netio_stream_sent_direct_bytes_total{peer="a"} 1
netio_stream_sent_indirect_bytes_total{peer="a"} 2
netio_stream_received_direct_bytes_total{peer="a"} 6
netio_stream_received_indirect_bytes_total{peer="a"} 7
netio_stream_phase_switches_total{peer="a"} 3
netio_stream_adverts_total{peer="a"} 9
netio_stream_waits_for_ring_total{peer="a"} 4
netio_stream_waits_for_advert_total{peer="a"} 5
netio_stream_waits_for_capacity_total{peer="a"} 10
netio_stream_waiting{peer="a"} 12
netio_stream_latency_median_seconds{peer="a"} 0
netio_stream_latency_p99_seconds{peer="a"} 0
)");
    for (int i = 0; i < 90; ++i)
        stream.counters.latency.add(std::chrono::milliseconds{1});
    for (int i = 0; i < 10; ++i)
        stream.counters.latency.add(seconds{2});
    const std::string all = samples(std::span<const StreamMetrics>{&stream, 1});
    EXPECT_NE(all.find("latency_median_seconds{peer=\"a\"} 0.001"), std::string::npos) << all;
    EXPECT_NE(all.find("latency_p99_seconds{peer=\"a\"} 2"), std::string::npos) << all;
}

TEST(ShownMetrics, AreDistinctForAPortOfADevice) {
    const RdmaDevice device{.name = "d",
                            .ports = {{.number = 2,
                                       .state = "ACTIVE",
                                       .link_layer = "Ethernet",
                                       .rate = "100 Gb/s",
                                       .interface = {},
                                       .interface_mtu = {},
                                       .counters = {{"symbol_error", 3},
                                                    {"out_of_buffer", 4},
                                                    {"packet_seq_err", 5},
                                                    {"port_rcv_data", 6}}}}};
    EXPECT_EQ(samples(std::span{&device, 1}), R"(
netio_device_active{port="d/2",link_layer="Ethernet",rate="100 Gb/s"} 1
netio_device_port_errors_total{port="d/2"} 3
netio_device_receiver_not_ready_total{port="d/2"} 4
netio_device_retransmissions_total{port="d/2"} 5
netio_device_counter_total{port="d/2",counter="out_of_buffer"} 4
netio_device_counter_total{port="d/2",counter="packet_seq_err"} 5
netio_device_counter_total{port="d/2",counter="port_rcv_data"} 6
netio_device_counter_total{port="d/2",counter="symbol_error"} 3
)");
}

TEST(ShownMetrics, AreDistinctForALoop) {
    const LoopMetrics loop{.turns = 1,
                           .waits = 2,
                           .longest_turn = seconds{3},
                           .stalled = seconds{4},
                           .log_lines_left_out = 5};
    EXPECT_EQ(samples(loop), "\nnetio_info{version=\"" + std::string{netio::version()} + R"("} 1
netio_loop_turns_total 1
netio_loop_waits_total 2
netio_loop_longest_turn_seconds 3
netio_loop_stalled_seconds_total 4
netio_log_lines_left_out_total 5
)");
}

TEST(LoopMetrics, AreThoseOfTheLoopAndTheLongestTurnIsReset) {
    netio::EventLoop loop;
    const std::uint64_t before = lines_left_out_of_log();
    lines_left_out_of_log() += 7;
    for (int turn = 0; turn < 3; ++turn) {
        ASSERT_TRUE(loop.post([] {}));
        loop.run_once();
    }
    const LoopMetrics first = take_snapshot(loop);
    EXPECT_EQ(first.turns, 3U);
    EXPECT_EQ(first.waits, loop.wait_count());
    EXPECT_EQ(first.longest_turn, loop.turns().longest());
    EXPECT_EQ(first.stalled, loop.stalled());
    EXPECT_EQ(first.log_lines_left_out, before + 7);
    EXPECT_EQ(take_snapshot(loop).longest_turn, netio::Duration::zero());
}

} // namespace
} // namespace apps::families_test
