// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publisher_config.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

namespace apps::publisher_config_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string head = "listen: 127.0.0.1:0\n"
                         "mode: buffered\n";
const std::string streams = "streams:\n"
                            "  - {fids: 0-3, source: pattern, size: 40}\n";

PublisherConfig parse(const std::string& text) {
    return parse_publish_config(text, "test.yaml", NETIO_CONFIG_FOLDER).publishers.front();
}

std::string error_of(const std::string& text) {
    try {
        parse(text);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

TEST(PublisherConfig, EveryExampleIsSound) {
    int examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator{NETIO_CONFIG_FOLDER}) {
        if (entry.path().extension() != ".yaml") continue;
        SCOPED_TRACE(entry.path().string());
        const PublishConfig config = load_publish_config(entry.path().string());
        EXPECT_FALSE(config.publishers.front().streams.empty());
        ++examples;
    }
    EXPECT_GE(examples, 10);
}

TEST(PublisherConfig, TwentyFourLinksOfFortyELinksAreOneLine) {
    const auto fids = [](const std::string& text) {
        const std::string rest = "\n    source: pattern\n    size: 40\n";
        return parse("listen: 127.0.0.1:0\nmode: buffered\nstreams:\n  - fids: " + text + rest)
            .streams[0]
            .fids;
    };
    EXPECT_EQ(fids("{detector: 3, link: 0-23, elink: 0-39}").size(), 960U);
    EXPECT_EQ(fids("[{detector: 3, link: [0, 5], elink: 7}, 9, 0-6/3]").size(), 6U);
    EXPECT_EQ(fids("\n      - {link: 1}\n      - mask:0xfffffffffffffffe=0x10").size(), 2U);
}

TEST(PublisherConfig, AnUnknownFieldIsReportedWithItsPosition) {
    EXPECT_THAT(error_of("listen: 127.0.0.1:0\nmode: buffered\nstreams:\n"
                         "  - {fids: {lnk: 3}, source: pattern, size: 40}\n"),
                testing::AllOf(
                    testing::StartsWith("test.yaml:4:12: streams[0].fids: '{lnk: 3}' has no field "
                                        "'lnk' of felix: version, detector"),
                    testing::HasSubstr("; allowed: ")));
    EXPECT_THAT(error_of("listen: 127.0.0.1:0\nmode: buffered\nstreams:\n"
                         "  - {fids: {link: {a: 1}}, source: pattern, size: 40}\n"),
                testing::HasSubstr("a map in a map; allowed: "));
}

TEST(PublisherConfig, ReadsEverything) {
    const PublishConfig all = parse_publish_config(R"(
listen: [127.0.0.1:1, "[::1]:2"]
provider: tcp
mode: buffered
loop: {mode: adaptive, spin: 7us}
buffered: {page_size: 4k, page_count: 9, queue_limit: 3k, watermark: 1k, flush_time: 11us,
           flush_when_idle: true, newest: 2MiB, history_limit: 8MiB, history_time: 2s}
heartbeat: 100ms
dead_after: 700ms
slow_policy: disconnect
disconnect_after: 55ms
largest_message: 1M
wait_subscribers: 4
seed: 100
streams:
  - fids: [1, 0x10-0x11]
    source: pattern
    size: {uniform: {min: 30, max: 1k}}
    rate: {per_second: 2.5, burst: 4}
    count: 6
    status: 8
  - {fids: 99, source: pipe, size: {list: [1, 2]}, rate: max, seed: 3}
)",
                                                   "test.yaml", NETIO_CONFIG_FOLDER);
    const PublisherConfig& config = all.publishers.front();
    EXPECT_THAT(config.listen, ElementsAre(netio::Address{.host = "127.0.0.1", .port = 1},
                                           netio::Address{.host = "::1", .port = 2}));
    EXPECT_EQ(all.fabric.provider, "tcp");
    EXPECT_TRUE(config.buffered);
    EXPECT_EQ(all.loop.mode, netio::LoopMode::adaptive);
    EXPECT_EQ(all.loop.spin.count(), 7);
    EXPECT_EQ(config.buffered_options.page_size_bytes, 4096U);
    EXPECT_EQ(config.buffered_options.page_count, 9U);
    EXPECT_EQ(config.buffered_options.queue_limit_bytes, 3072U);
    EXPECT_EQ(config.buffered_options.watermark_bytes, 1024U);
    EXPECT_EQ(config.buffered_options.newest_bytes, 2097152U);
    EXPECT_EQ(config.buffered_options.history_limit_bytes, 8388608U);
    EXPECT_EQ(config.buffered_options.history_time, std::chrono::seconds{2});
    EXPECT_EQ(config.buffered_options.flush_time.count(), 11);
    EXPECT_TRUE(config.buffered_options.flush_when_idle);
    EXPECT_EQ(config.publisher.session.heartbeat.count(), 100);
    EXPECT_EQ(config.publisher.session.dead_after.count(), 700);
    EXPECT_EQ(config.publisher.slow_policy, netio::pubsub::SlowPolicy::disconnect);
    EXPECT_EQ(config.publisher.disconnect_after.count(), 55);
    EXPECT_EQ(config.publisher.largest_message_bytes, 1048576U);
    EXPECT_EQ(config.wait_subscribers, 4U);
    ASSERT_EQ(config.streams.size(), 2U);
    const StreamConfig& first = config.streams[0];
    EXPECT_EQ(first.fids.size(), 2U);
    EXPECT_EQ(smallest(first.sizes), 30U);
    EXPECT_EQ(largest(first.sizes), 1024U);
    EXPECT_EQ(first.rate->per_second, 2.5);
    EXPECT_EQ(first.rate->burst, 4U);
    EXPECT_EQ(first.count, 6U);
    EXPECT_EQ(first.status, 8);
    EXPECT_EQ(first.seed, 100U);
    const StreamConfig& second = config.streams[1];
    EXPECT_TRUE(std::holds_alternative<PipeConfig>(second.source));
    EXPECT_FALSE(second.rate);
    EXPECT_EQ(second.seed, 3U);
}

TEST(PublisherConfig, ReadsWhereMetricsAreShown) {
    const std::string rest = "listen: h:1\nmode: buffered\n"
                             "streams: [{fids: 1, source: pattern, size: 64}]\n";
    EXPECT_EQ(parse_publish_config(rest, "f", "").publishers.front().metrics.listen, "");
    const auto briefly =
        parse_publish_config(rest + "metrics: 127.0.0.1:9\n", "f", "").publishers.front();
    EXPECT_EQ(briefly.metrics.listen, "127.0.0.1:9");
    EXPECT_FALSE(briefly.metrics.allow_remote_anonymous);
    const auto all =
        parse_publish_config(
            rest + "metrics: {listen: 'h:9', allow_remote_anonymous: true, fids: 7}\n", "f", "")
            .publishers.front();
    EXPECT_EQ(all.metrics.listen, "h:9");
    EXPECT_TRUE(all.metrics.allow_remote_anonymous);
    EXPECT_EQ(all.metrics.fids, 7U);
    EXPECT_THROW(parse_publish_config(rest + "metrics: nowhere\n", "f", ""), ConfigError);
}

TEST(PublisherConfig, SeveralPublishersAreAList) {
    const PublishConfig config = parse_publish_config(
        "provider: tcp\nseed: 5\n"
        "x-common: &common {listen: 127.0.0.1:0, mode: buffered}\npublishers:\n"
        "  - {<<: *common, streams: [{fids: 1, source: pattern, size: 64}]}\n"
        "  - {<<: *common, name: second, mode: unbuffered,\n"
        "     streams: [{fids: 1, source: pattern, size: 64}]}\n",
        "test.yaml", "");
    ASSERT_EQ(config.publishers.size(), 2U);
    EXPECT_EQ(config.publishers[0].name, "0");
    EXPECT_TRUE(config.publishers[0].buffered);
    EXPECT_EQ(config.publishers[0].streams[0].seed, 5U);
    EXPECT_EQ(config.publishers[1].name, "second");
    EXPECT_FALSE(config.publishers[1].buffered);
    EXPECT_EQ(config.publishers[1].streams[0].seed, 6U);
}

TEST(PublisherConfig, ReadsTheUnbufferedMode) {
    const PublisherConfig config =
        parse("listen: localhost:5\nmode: unbuffered\n"
              "unbuffered: {outstanding_limit: 5, queue_limit: 2, memory: 1M}\n" +
              streams);
    EXPECT_FALSE(config.buffered);
    EXPECT_EQ(config.unbuffered_options.outstanding_limit, 5U);
    EXPECT_EQ(config.unbuffered_options.queue_limit_messages, 2U);
    EXPECT_EQ(config.memory_bytes, 1048576U);
}

// --- every error has file, line, column, key, problem and the allowed values ----------------

struct Mistake {
    std::string text;
    std::string begins;   // FILE:LINE:COLUMN: KEY:
    std::string contains; // problem, and the allowed values
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
    *out << testing::PrintToString(mistake.text);
}

class PublisherConfigMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PublisherConfigMistake, IsNamed) {
    const std::string error = error_of(GetParam().text);
    EXPECT_THAT(error, StartsWith(GetParam().begins));
    EXPECT_THAT(error, HasSubstr(GetParam().contains));
    EXPECT_THAT(error, HasSubstr("; allowed: "));
}

INSTANTIATE_TEST_SUITE_P(
    OfTheDocument, PublisherConfigMistake,
    testing::Values(
        Mistake{"", "test.yaml:1:1: document: ", "a map is expected"},
        Mistake{"[1, 2]", "test.yaml:1:1: document: ", "a map is expected"},
        Mistake{"a: [1", "test.yaml:", "allowed: YAML"},
        Mistake{head + "  bad: indentation\n", "test.yaml:3:6: document: ", "allowed: YAML"},
        Mistake{"mode: buffered\n" + streams,
                "test.yaml:1:1: document: ", "key 'listen' is missing"},
        Mistake{head, "test.yaml:1:1: document: ", "key 'streams' is missing"},
        Mistake{"listen: a:1\n" + streams, "test.yaml:1:1: document: ",
                "key 'mode' is missing; allowed: mode: unbuffered, buffered"},
        Mistake{head + "publishers: [{}]\n", "test.yaml:1:9: listen: ",
                "belongs to a single publisher, but there are several; allowed: in each entry of"},
        Mistake{"publishers: [{}]\n", "test.yaml:1:14: publishers[0]: ", "key 'listen' is missing"},
        Mistake{"publishers: [{listen: a:1, mode: buffered, name: 1, streams: [{fids: 1, source: "
                "pipe}]},\n {listen: a:1, mode: buffered, streams: [{fids: 1, source: pipe}]}]\n",
                "test.yaml:2:60: publishers[1].streams[0].source: ",
                "another stream reads standard input"},
        Mistake{"publishers: [{listen: a:1, mode: buffered, name: 1, streams: [{fids: 1, source: "
                "pipe}]},\n {listen: a:1, mode: buffered, streams: [{fids: 1, source: pattern, "
                "size: 9}]}]\n",
                "test.yaml:2:2: publishers[1]: ", "the name '1' is taken"},
        Mistake{head + "stream:\n  - {}\n",
                "test.yaml:3:1: stream: ", "unknown key (did you mean 'streams'?)"},
        Mistake{head + "zzz: 1\n" + streams,
                "test.yaml:3:1: zzz: ", "unknown key; allowed: listen"},
        Mistake{head + streams + "mode: unbuffered\n", "test.yaml:5:1: mode: ", "key given twice"},
        Mistake{head + streams + "---\nmode: unbuffered\n",
                "test.yaml:5:1: document: ", "there is more text after the document"},
        Mistake{",", "test.yaml:1:1: document: ", "there is more text after the document"},
        Mistake{"  listen: a:1\n, b\n",
                "test.yaml:2:1: document: ", "there is more text after the document"},
        Mistake{head + "\"a\\nb\\x7f\": 1\n" + streams,
                "test.yaml:3:1: a\nb\x7f: ", "unknown key"}));

INSTANTIATE_TEST_SUITE_P(
    OfThePublisher, PublisherConfigMistake,
    testing::Values(
        Mistake{"listen: nonsense\nmode: buffered\n" + streams,
                "test.yaml:1:9: listen: ", "HOST:PORT"},
        Mistake{"listen: [127.0.0.1:1, 127.0.0.1:99999]\nmode: buffered\n" + streams,
                "test.yaml:1:23: listen[1]: ", "allowed: HOST:PORT"},
        Mistake{"listen: a:1\nmode: bufferd\n" + streams, "test.yaml:2:7: mode: ",
                "'bufferd' is unknown (did you mean 'buffered'?); allowed: unbuffered, buffered"},
        Mistake{head + "provider: sockets\n" + streams,
                "test.yaml:3:11: provider: ", "allowed: auto, tcp, verbs"},
        Mistake{head + "loop: {spin: 3us}\n" + streams,
                "test.yaml:3:7: loop: ", "key 'mode' is missing"},
        Mistake{head + "loop: {mode: sleepy}\n" + streams,
                "test.yaml:3:14: loop.mode: ", "allowed: blocking, busy, adaptive"},
        Mistake{head + "unbuffered: {outstanding_limit: 1}\n" + streams,
                "test.yaml:3:13: unbuffered: ", "the mode is buffered"},
        Mistake{"listen: a:1\nmode: unbuffered\nunbuffered: {outstanding_limit: 1}\n" + streams,
                "test.yaml:3:33: unbuffered.outstanding_limit: ", "1 is out of range"},
        Mistake{"listen: a:1\nmode: unbuffered\nunbuffered: {queue_limit: 16, outstanding_limit: "
                "16}\n" +
                    streams,
                "test.yaml:3:27: unbuffered.queue_limit: ",
                "16 is more than half of outstanding_limit, which is 16"},
        Mistake{head + "buffered: {page_size: 100}\n" + streams,
                "test.yaml:3:23: buffered.page_size: ", "100 is out of range"},
        Mistake{head + "buffered: {page_size: 1q}\n" + streams,
                "test.yaml:3:23: buffered.page_size: ", "'1q' is not a number of bytes"},
        Mistake{head + "buffered: {page_size: 99999999999999999999}\n" + streams,
                "test.yaml:3:23: buffered.page_size: ", "is not a number of bytes"},
        Mistake{head + "buffered: {page_size: 17179869184G}\n" + streams,
                "test.yaml:3:23: buffered.page_size: ", "is not a number of bytes"},
        Mistake{head + "buffered: {page_count: -3}\n" + streams,
                "test.yaml:3:24: buffered.page_count: ", "'-3' is not a whole number"},
        Mistake{head + "buffered: {flush_when_idle: maybe}\n" + streams,
                "test.yaml:3:29: buffered.flush_when_idle: ", "allowed: false, true"},
        Mistake{head + "heartbeat: 5s\ndead_after: 6s\n" + streams,
                "test.yaml:4:13: dead_after: ", "at least twice heartbeat (5s)"},
        Mistake{head + "heartbeat: 5000\n" + streams, "test.yaml:3:12: heartbeat: ",
                "'5000' has no unit; allowed: 0, or a time with its unit from 1ms to 65535ms"},
        Mistake{head + "heartbeat: 65535001us\n" + streams,
                "test.yaml:3:12: heartbeat: ", "65535001us is out of range"},
        Mistake{head + "close_timeout: 0\n" + streams, "test.yaml:3:16: close_timeout: ",
                "'0' has no unit; allowed: a time with its unit from 1ms to 365d"},
        Mistake{head + "close_timeout: 5s\nclose_limit: 4s\n" + streams,
                "test.yaml:4:14: close_limit: ", "at least 5s (close_timeout)"},
        Mistake{head + "buffered: {flush_time: soon}\n" + streams,
                "test.yaml:3:24: buffered.flush_time: ", "'soon' is not a time"},
        Mistake{head + "slow_policy: [drop]\n" + streams,
                "test.yaml:3:14: slow_policy: ", "a single value is expected"},
        Mistake{head + "provider: \"tcp\\0\"\n" + streams,
                "test.yaml:3:11: provider: ", "a zero byte; allowed: auto, tcp, verbs"},
        Mistake{head + "slow_policy: drop\ndisconnect_after: 5ms\n" + streams,
                "test.yaml:4:19: disconnect_after: ", "has no effect"},
        Mistake{head + "slow_policy: newest\ndisconnect_after: 5ms\n" + streams,
                "test.yaml:4:19: disconnect_after: ", "has no effect"},
        Mistake{"listen: 127.0.0.1:0\nmode: unbuffered\nslow_policy: newest\n" + streams,
                "test.yaml:3:14: slow_policy: ", "newest with mode: buffered"},
        Mistake{head + "subscriber_limit: 3\nwait_subscribers: 4\n" + streams,
                "test.yaml:4:19: wait_subscribers: ", "more than subscriber_limit"},
        Mistake{head + "triggers: {l1: {per_second: 5}}\n" + streams,
                "test.yaml:3:16: triggers.l1: ",
                "no stream has this trigger; allowed: trigger: l1 in a stream"},
        Mistake{head + "wait_subscribers: many\n" + streams,
                "test.yaml:3:19: wait_subscribers: ", "'many' is not a whole number"}));

Mistake in_stream(const std::string& line, const std::string& begins, const std::string& contains) {
    return {head + "streams:\n  - " + line + "\n", begins, contains};
}

INSTANTIATE_TEST_SUITE_P(
    OfAStream, PublisherConfigMistake,
    testing::Values(
        Mistake{head + "streams: []\n", "test.yaml:3:10: streams: ", "a list is expected"},
        Mistake{head + "streams: 7\n", "test.yaml:3:10: streams: ", "a list is expected"},
        in_stream("{source: pattern, size: 40}",
                  "test.yaml:4:5: streams[0]: ", "key 'fids' is missing"),
        in_stream("{fids: 9-3, source: pattern, size: 40}", "test.yaml:4:12: streams[0].fids: ",
                  "'9-3' ends before it begins; allowed: a fid in decimal or hex"),
        in_stream("{fids: \"1\\0\", source: pattern, size: 40}",
                  "test.yaml:4:12: streams[0].fids: ", "a zero byte; allowed: a fid"),
        in_stream("{fids: [1, x], source: pattern, size: 40}",
                  "test.yaml:4:16: streams[0].fids[1]: ", "'x' is not a fid"),
        in_stream("{fids: 0-9999999, source: pattern, size: 40}",
                  "test.yaml:4:12: streams[0].fids: ", "more than a million fids"),
        in_stream("{fids: 1, source: patern, size: 40}",
                  "test.yaml:4:23: streams[0].source: ", "did you mean 'pattern'?"),
        in_stream(
            "{fids: 1, source: file}", "test.yaml:4:23: streams[0].source: ",
            "'file' needs a path; allowed: pattern, pipe, {file: PATH}, {files: [PATH, ...]}"),
        in_stream("{fids: 1-2, source: pipe}",
                  "test.yaml:4:25: streams[0].source: ", "standard input is a single stream"),
        in_stream("{fids: \"1\\n2\", source: pattern, size: 40}",
                  "test.yaml:4:12: streams[0].fids: ", "'1\n2' is not a fid"),
        Mistake{head + "streams:\n  - {fids: 0, source: pipe}\n  - {fids: 1, source: pipe}\n",
                "test.yaml:5:23: streams[1].source: ",
                "another stream reads standard input already; allowed: pipe in one stream only"},
        in_stream("{fids: 1, source: {file: /no/where}}",
                  "test.yaml:4:30: streams[0].source.file: ", "'/no/where' is not a file"),
        in_stream("{fids: 1, source: {repeat: true}}",
                  "test.yaml:4:23: streams[0].source: ", "needs one of file, files and recording"),
        in_stream("{fids: [1, 2, 1], source: pattern, size: 40}",
                  "test.yaml:4:12: streams[0].fids: ", "a fid is given twice"),
        Mistake{head + "largest_message: 7\nstreams:\n"
                       "  - {fids: 1, source: pattern, size: 10}\n",
                "test.yaml:5:5: streams[0]: ", "at least 8 bytes, but largest_message is 7"},
        in_stream("{fids: 1-3, source: {files: [files.yaml, pipe.yaml]}}",
                  "test.yaml:4:33: streams[0].source.files: ", "2 files for 3 fids"),
        in_stream("{fids: 1, source: pattern}",
                  "test.yaml:4:5: streams[0]: ", "key 'size' is missing"),
        in_stream("{fids: 1, source: pattern, size: 7}",
                  "test.yaml:4:38: streams[0].size: ", "a number of bytes from 8 to 16777216"),
        in_stream("{fids: 1, source: pattern, size: 24, faults: {corrupted: 0.1}}",
                  "test.yaml:4:38: streams[0].size: ", "a number of bytes from 25 to 16777216"),
        in_stream("{fids: 1, source: pattern, size: 99, faults: {late: 0.6, missing: 0.5}}",
                  "test.yaml:4:50: streams[0].faults: ", "more faults than messages"),
        in_stream("{fids: 1, source: pattern, size: 99, faults: {mising: 0.6}}",
                  "test.yaml:4:51: streams[0].faults.mising: ",
                  "unknown key (did you mean 'missing'?); allowed: missing, duplicated"),
        in_stream("{fids: 1, source: pattern, size: 99, trigger: l1}",
                  "test.yaml:4:51: streams[0].trigger: ", "needs the publisher's triggers"),
        Mistake{head + "triggers: {l1: {per_second: 5}}\n" +
                    "streams: [{fids: 1, source: pattern, size: 99, trigger: l2}]\n",
                "test.yaml:4:57: streams[0].trigger: ", "'l2' is unknown (did you mean 'l1'?)"},
        Mistake{head + "triggers: {l1: {per_second: 5}}\n" +
                    "streams: [{fids: 1, source: pattern, size: 99, trigger: l1, rate: 4}]\n",
                "test.yaml:4:57: streams[0].trigger: ", "the stream also has a rate"},
        Mistake{head + "triggers: {l1: {burst: 5}}\n" + streams,
                "test.yaml:3:16: triggers.l1: ", "key 'per_second' is missing"},
        in_stream("{fids: 1, source: pattern, size: 99, header: 0xabc}",
                  "test.yaml:4:50: streams[0].header: ",
                  "'0xabc' is not a valid header; allowed: event"),
        Mistake{head + "time_stamps: own\n" + streams,
                "test.yaml:3:14: time_stamps: ", "allowed: none, tai"},
        in_stream("{fids: 1, source: pattern, size: 99, rate: {per_fid: 1, per_second: 2}}",
                  "test.yaml:4:48: streams[0].rate: ", "one of per_second and per_fid"),
        in_stream("{fids: 1, source: pattern, size: 99, rate: {per_fid: 1, gap: 2ns}}",
                  "test.yaml:4:66: streams[0].rate.gap: ", "needs train"),
        in_stream("{fids: 1, source: pattern, size: {uniform: {min: 50, max: 40}}}",
                  "test.yaml:4:63: streams[0].size.uniform.max: ", "from 50 to"),
        in_stream("{fids: 1, source: pattern, size: {normal: {mean: 50, max: 99}}}",
                  "test.yaml:4:47: streams[0].size.normal: ", "key 'stddev' is missing"),
        in_stream("{fids: 1, source: pattern, size: {normal: {mean: 50, stddev: 1, max: 10}}}",
                  "test.yaml:4:54: streams[0].size.normal.mean: ",
                  "outside of min and max; allowed: a number from 8 to 10"),
        in_stream("{fids: 1, source: pattern, size: {exponential: {mean: 5, min: 9, max: 10}}}",
                  "test.yaml:4:59: streams[0].size.exponential.mean: ", "a number from 9 to 10"),
        in_stream("{fids: 1, source: pattern, size: 40, meaning: \"a\\nb\"}",
                  "test.yaml:4:51: streams[0].meaning: ", "a control character"),
        in_stream("{fids: 1, source: pattern, size: 40, meaning: \"a\\tb\"}",
                  "test.yaml:4:51: streams[0].meaning: ", "a control character"),
        in_stream("{fids: 1, source: pattern, size: 40, meaning: " + std::string(257, 'x') + "}",
                  "test.yaml:4:51: streams[0].meaning: ", "longer than 256 bytes"),
        in_stream("{fids: 1, source: pattern, size: 40, meaning: caf\xe9}",
                  "test.yaml:4:51: streams[0].meaning: ", "not UTF-8; allowed: one line of UTF-8"),
        in_stream("{fids: 1, source: pattern, size: {list: []}}",
                  "test.yaml:4:45: streams[0].size.list: ", "a list is expected"),
        in_stream("{fids: 1, source: pattern, size: 40, rate: 0}",
                  "test.yaml:4:48: streams[0].rate: ", "0 is out of range"),
        in_stream("{fids: 1, source: pattern, size: 40, rate: fast}",
                  "test.yaml:4:48: streams[0].rate: ",
                  "'fast' is not a number; allowed: a number above 0 up to 1000000000, max, or "
                  "{per_second, burst}"),
        in_stream("{fids: 1, source: pattern, size: 40, rate: ''}",
                  "test.yaml:4:48: streams[0].rate: ", "allowed: a number, max, or"),
        in_stream("{fids: 1, source: pattern, size: {fixed: 40, list: [50]}}",
                  "test.yaml:4:38: streams[0].size: ",
                  "needs exactly one kind of size; allowed: a number"),
        in_stream("{fids: 1, source: pattern, size: {}}",
                  "test.yaml:4:38: streams[0].size: ", "needs exactly one kind of size"),
        in_stream("{fids: 1, source: pattern, size: 40, count: 0}",
                  "test.yaml:4:49: streams[0].count: ", "0 is out of range"),
        in_stream("{fids: 1, source: pattern, size: 40, status: 256}",
                  "test.yaml:4:50: streams[0].status: ", "from 0 to 255"),
        Mistake{head + "streams:\n  - {fids: 0-9, source: pattern, size: 40}\n"
                       "  - {fids: [20, 5], source: pattern, size: 40}\n",
                "test.yaml:5:12: streams[1].fids: ", "0x5 belongs to streams[0] already"}));

TEST(PublisherConfig, AFileThatCannotBeReadIsNamed) {
    try {
        load_publish_config("/no/where.yaml");
        FAIL() << "no error";
    } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), StartsWith("/no/where.yaml: cannot be read (No such file"));
    }
}

TEST(PublisherConfig, AFileThatIsFarTooLargeIsNotReadToItsEnd) {
    try {
        load_publish_config("/dev/zero");
        FAIL() << "no error";
    } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), StartsWith("/dev/zero: larger than a megabyte"));
    }
}

} // namespace
} // namespace apps::publisher_config_test
