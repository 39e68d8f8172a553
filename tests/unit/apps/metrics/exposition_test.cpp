// SPDX-License-Identifier: Apache-2.0

#include "apps/metrics/families.hpp"
#include "apps/metrics/metrics.hpp"

#include "netio/loop/event_loop.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace apps::exposition_test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(Exposition, HasHelpAndTypeBeforeTheSamplesOfAName) {
    Exposition text;
    text.counter("a_total", "What a is").add(std::uint64_t{7});
    text.gauge("b", "What b is").add({{"x", "1"}, {"y", "2"}}, std::uint64_t{8});
    EXPECT_EQ(std::move(text).take(),
              "# HELP a_total What a is\n# TYPE a_total counter\na_total 7\n"
              "# HELP b What b is\n# TYPE b gauge\nb{x=\"1\",y=\"2\"} 8\n");
}

TEST(Exposition, EscapesWhatWouldEndALabelOrALine) {
    Exposition text;
    text.gauge("a", "One \\ two\nthree \"four\"").add({{"x", "\"\\\n"}}, std::uint64_t{1});
    EXPECT_EQ(std::move(text).take(), "# HELP a One \\\\ two\\nthree \"four\"\n# TYPE a gauge\n"
                                      "a{x=\"\\\"\\\\\\n\"} 1\n");
}

TEST(Exposition, WritesTimesInSeconds) {
    Exposition text;
    text.gauge("a_seconds", "A").add(netio::Duration{milliseconds{1500}});
    EXPECT_THAT(std::move(text).take(), HasSubstr("a_seconds 1.5\n"));
}

TEST(Exposition, CountsAHistogramUpToEachBound) {
    netio::LatencyHistogram latency;
    latency.add(milliseconds{1});
    latency.add(milliseconds{3});
    Exposition text;
    text.histogram("a_seconds", "A", latency);
    const std::string shown = std::move(text).take();
    EXPECT_THAT(shown, HasSubstr("a_seconds_bucket{le=\"0.000524288\"} 0\n"));
    EXPECT_THAT(shown, HasSubstr("a_seconds_bucket{le=\"0.001048576\"} 1\n"));
    EXPECT_THAT(shown, HasSubstr("a_seconds_bucket{le=\"+Inf\"} 2\na_seconds_sum 0.004\n"
                                 "a_seconds_count 2\n"));
}

PublisherMetrics a_publisher() {
    PublisherMetrics publisher{.unit = "bytes", .counters = {}, .snapshot = {}, .disconnected = 3};
    publisher.counters.messages = 1000;
    publisher.snapshot.fids = {
        {.fid = netio::pubsub::Fid{255}, .messages = 900, .again = 6, .dropped = 5}};
    publisher.snapshot.subscribers = {{.id = netio::pubsub::SubscriberId{4294967296},
                                       .address = "127.0.0.1:4000",
                                       .waiting = 512,
                                       .credits = 4,
                                       .least_credits = 2,
                                       .dropped = 5,
                                       .idle = milliseconds{250}}};
    publisher.snapshot.subscriber_count = 1;
    return publisher;
}

std::string shown(const auto& metrics) {
    Exposition text;
    write(metrics, text);
    return std::move(text).take();
}

TEST(PublisherMetrics, NameEverySubscriberAndFid) {
    const std::string text = shown(a_publisher());
    EXPECT_THAT(text, HasSubstr("netio_publisher_messages_total 1000\n"));
    EXPECT_THAT(text, HasSubstr("netio_publisher_disconnected_total 3\n"));
    EXPECT_THAT(text, HasSubstr("netio_fid_messages_total{fid=\"0xff\"} 900\n"));
    EXPECT_THAT(text, HasSubstr("netio_fid_again_total{fid=\"0xff\"} 6\n"));
    EXPECT_THAT(text, HasSubstr("netio_peer_least_credits{peer=\"127.0.0.1:4000\",id=\"1\"} 2"));
    EXPECT_THAT(text, HasSubstr("netio_peer_waiting{peer=\"127.0.0.1:4000\",id=\"1\"} 512"));
    EXPECT_THAT(text, HasSubstr("\"1\"} 0.25\n"));
}

TEST(GateMetrics, CountAdmittedPostponedAndRefusedPeers) {
    const netio::ServerKeys::Counters gate{
        .admitted = 1, .challenged = 2, .busy = 3, .refused = 4, .sessions = 5};
    const std::string text = shown(gate);
    EXPECT_THAT(text, HasSubstr("netio_gate_admitted_total 1\n"));
    EXPECT_THAT(text, HasSubstr("netio_gate_challenged_total 2\n"));
    EXPECT_THAT(text, HasSubstr("netio_gate_busy_total 3\n"));
    EXPECT_THAT(text, HasSubstr("netio_gate_refused_total 4\n"));
    EXPECT_THAT(text, HasSubstr("netio_gate_sessions 5\n"));
}

TEST(GateMetrics, AreShownBeforeTheRestIfThereAreKeys) {
    const netio::test::KeyFiles files;
    netio::EventLoop loop;
    const Collect rest = [] {
        return [](Exposition& text) { text.gauge("rest", "R").add(std::uint64_t{1}); };
    };
    const auto first_line = [&](std::shared_ptr<const netio::ServerKeys> keys) {
        Exposition text;
        with_gate(std::move(keys), rest)()(text);
        const std::string all = std::move(text).take();
        EXPECT_THAT(all, HasSubstr("rest 1\n"));
        return all.substr(0, all.find('\n'));
    };
    EXPECT_EQ(first_line(nullptr), "# HELP rest R");
    EXPECT_THAT(first_line(std::make_shared<netio::ServerKeys>(
                    loop, netio::ServerKeys::Options{.file = files.site()})),
                HasSubstr("netio_gate_admitted_total"));
}

TEST(StreamMetrics, ShowWhatWaitsAndHowLongSendsTook) {
    StreamMetrics stream{.peer = "10.0.0.1:7", .counters = {}, .queued_bytes = 5};
    for (int i = 0; i < 99; ++i)
        stream.counters.latency.add(std::chrono::milliseconds{1});
    stream.counters.latency.add(std::chrono::seconds{2});
    const std::string text = shown(std::span<const StreamMetrics>{&stream, 1});
    EXPECT_THAT(text, HasSubstr("netio_stream_waiting{peer=\"10.0.0.1:7\"} 5\n"));
    EXPECT_THAT(text, HasSubstr("netio_stream_latency_median_seconds{peer=\"10.0.0.1:7\"} 0.001"));
    EXPECT_THAT(text, HasSubstr("netio_stream_latency_p99_seconds{peer=\"10.0.0.1:7\"} 0.001"));
}

// The metric names in a query; a histogram is queried by its buckets.
std::vector<std::string> names_in(std::string_view query) {
    constexpr std::string_view start = "netio_";
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    constexpr std::string_view bucket = "_bucket";
    std::vector<std::string> names;
    for (auto at = query.find(start); at != std::string_view::npos;
         at = query.find(start, at + 1)) {
        std::string_view name = query.substr(at);
        name = name.substr(0, name.find_first_not_of(letters));
        if (name.ends_with(bucket)) name.remove_suffix(bucket.size());
        names.emplace_back(name);
    }
    return names;
}

// A dashboard may only use metrics that exist.
TEST(PublisherMetrics, HaveEveryNameThatTheDashboardAsksFor) {
    std::set<std::string> names;
    const RdmaDevice device{
        .name = "mlx5_0",
        .ports = {{.state = "ACTIVE", .link_layer = {}, .rate = {}, .interface = {}}}};
    std::istringstream lines{shown(a_publisher()) + shown(netio::pubsub::SubscriptionsSnapshot{}) +
                             shown(SenderMetrics{}) + shown(ReceiverMetrics{}) +
                             shown(std::span<const StreamMetrics>{}) +
                             shown(std::span{&device, 1})};
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# TYPE ")) names.insert(line.substr(7, line.find(' ', 7) - 7));
    }
    for (const char* const name : {"netio_loop_longest_turn_seconds"}) // of every program
        names.insert(name);
    std::ifstream file{NETIO_DOCS_FOLDER "/grafana-dashboard.json"};
    const auto dashboard = nlohmann::json::parse(file);
    std::size_t asked = 0;
    for (const auto& panel : dashboard.at("panels")) {
        for (const auto& target : panel.at("targets")) {
            const std::string query = target.at("expr");
            for (const std::string& name : names_in(query)) {
                EXPECT_TRUE(names.contains(name)) << name << " in " << query;
                ++asked;
            }
        }
    }
    EXPECT_GE(asked, 10U);
}

} // namespace
} // namespace apps::exposition_test
