// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish.hpp"

#include "apps/publish/publish.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <set>

namespace apps::loop_parts_test {
namespace {

using netio::Address;
using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using testing::ElementsAre;
using testing::HasSubstr;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

PublisherConfig config_of(const std::string& streams, const std::string& more = "") {
    return parse_publish_config("listen: [127.0.0.1:7000, '127.0.0.2:0']\nmode: buffered\n" + more +
                                    "streams:\n" + streams,
                                "test.yaml", "/folder")
        .publishers.front();
}

PublisherConfig pattern_of(const std::string& fids, const std::string& more = "") {
    return config_of("  - {fids: " + fids + ", source: pattern, size: 40}\n", more);
}

std::string refusal_of(const PublisherConfig& config, std::size_t loops) {
    try {
        refuse_shared_ports(divided(config, loops), loops);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no refusal";
}

TEST(LoopParts, OneLoopHasAllOfItUnchanged) {
    const auto parts = divided(pattern_of("0-9"), 1);
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_FALSE(parts.front().publisher.fids.has_value());
    EXPECT_EQ(parts.front().name, "");
    EXPECT_THAT(parts.front().streams.front().fids, ElementsAre(range(0, 9)));
}

TEST(LoopParts, EachLoopHasFidsPortsAndANameOfItsOwn) {
    PublisherConfig all =
        pattern_of("0-9", "metrics: 127.0.0.1:9100\nbus: {at: /bus, name: hits}\n");
    all.keys.advertised_addresses = {"203.0.113.9:4000", "[2001:db8::9]:5000"};
    const auto parts = divided(all, 3);
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_THAT(*parts[0].publisher.fids, ElementsAre(range(0, 3)));
    EXPECT_THAT(*parts[1].publisher.fids, ElementsAre(range(4, 6)));
    EXPECT_THAT(*parts[2].publisher.fids, ElementsAre(range(7, 9)));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const PublisherConfig& part = parts[i];
        EXPECT_EQ(part.streams.front().fids, *part.publisher.fids);
        EXPECT_EQ(part.buffered_options.publisher.fids, part.publisher.fids);
        EXPECT_EQ(part.unbuffered_options.publisher.fids, part.publisher.fids);
        const auto number = static_cast<std::uint16_t>(i);
        EXPECT_THAT(part.listen,
                    ElementsAre(Address{"127.0.0.1", static_cast<std::uint16_t>(7000 + number)},
                                Address{"127.0.0.2", 0}));
        EXPECT_EQ(part.buffered_options.publisher.listen, part.listen);
        EXPECT_EQ(part.metrics.listen, "127.0.0.1:" + std::to_string(9100 + i));
        EXPECT_THAT(part.keys.advertised_addresses,
                    ElementsAre("203.0.113.9:" + std::to_string(4000 + i),
                                "[2001:db8::9]:" + std::to_string(5000 + i)));
        EXPECT_EQ(part.bus.name, "hits-" + std::to_string(i));
        EXPECT_EQ(part.name, "loop " + std::to_string(i));
        EXPECT_EQ(part.position, i); // so that generated names on a bus differ as well
    }
}

TEST(LoopParts, AdvertisedAddressesNeedAPortForEachLoop) {
    PublisherConfig all = pattern_of("0-9");
    all.keys.advertised_addresses = {"203.0.113.9:65534"};
    EXPECT_EQ(refusal_of(all, 2), "no refusal");
    EXPECT_THAT(refusal_of(all, 3), HasSubstr("203.0.113.9:65534 and the next 2 ports are needed"));
}

TEST(LoopParts, EachStreamAndItsRateIsDividedEvenlyAmongLoops) {
    const auto parts = divided(config_of("  - {fids: 0-2, source: pattern, size: 40, rate: 300}\n"
                                         "  - {fids: 10, source: pattern, size: 40, rate: 5}\n"
                                         "  - {fids: 20-22, source: pattern, size: 40}\n"),
                               2);
    EXPECT_THAT(*parts[0].publisher.fids, ElementsAre(range(0, 1), range(20, 21)));
    EXPECT_THAT(*parts[1].publisher.fids, ElementsAre(range(2, 2), range(10, 10), range(22, 22)));
    EXPECT_DOUBLE_EQ(parts[0].streams.front().rate->per_second, 200);
    EXPECT_DOUBLE_EQ(parts[1].streams.front().rate->per_second, 100);
    EXPECT_DOUBLE_EQ(parts[1].streams[1].rate->per_second, 5);
    EXPECT_NE(parts[0].streams.front().seed, parts[1].streams.front().seed);
}

TEST(LoopParts, FidsOfATriggerStayTogether) {
    const auto parts =
        divided(config_of("  - {fids: 0-2, source: pattern, size: 40, trigger: a}\n"
                          "  - {fids: 10-19, source: pattern, size: 40, trigger: b}\n"
                          "  - {fids: 3-4, source: pattern, size: 40, trigger: a}\n",
                          "triggers: {a: {per_second: 10}, b: {per_second: 10}}\n"),
                2);
    EXPECT_THAT(*parts[0].publisher.fids, ElementsAre(range(0, 4)));
    EXPECT_THAT(*parts[1].publisher.fids, ElementsAre(range(10, 19)));
    EXPECT_THAT(refusal_of(config_of("  - {fids: 0-2, source: pattern, size: 40, trigger: a}\n",
                                     "triggers: {a: {per_second: 10}}\n"),
                           2),
                HasSubstr("loops: 2, but there are fids for 1 only"));
}

TEST(LoopParts, AFidKeepsItsFile) {
    PublisherConfig config = pattern_of("[5, 1, 3]");
    FileConfig files;
    for (const FidRange& each : config.streams.front().fids) // one fid each, in some order
        files.paths.push_back("file of " + to_string(each.first));
    config.streams.front().source = files;
    const auto parts = divided(config, 2);
    const auto files_of = [](const PublisherConfig& part) {
        return std::get<FileConfig>(part.streams.front().source).paths;
    };
    std::set<std::string> seen;
    for (const PublisherConfig& part : parts) {
        std::size_t place = 0;
        for (const FidRange& each : part.streams.front().fids) {
            ASSERT_EQ(each.first, each.last);
            EXPECT_EQ(files_of(part).at(place), "file of " + to_string(each.first));
            seen.insert(files_of(part).at(place++));
        }
    }
    EXPECT_EQ(seen.size(), 3U);
}

TEST(LoopParts, WhatCannotBeDividedIsRefusedWithWhatIsAllowed) {
    EXPECT_EQ(refusal_of(pattern_of("0-9"), 2), "no refusal");
    EXPECT_THAT(refusal_of(pattern_of("7"), 2), HasSubstr("there are fids for 1 only; allowed"));
    PublisherConfig config = pattern_of("0-9");
    config.listen.front().port = 65535;
    EXPECT_THAT(refusal_of(config, 2),
                HasSubstr("127.0.0.1:65535 and the next 1 ports are needed"));
    EXPECT_THAT(refusal_of(pattern_of("0-9", "metrics: 127.0.0.1:7001\n"), 2),
                HasSubstr("127.0.0.1:7001 is used twice"));
    config = pattern_of("0-9", "bus: {at: /bus, name: " + std::string(128, 'a') + "}\n");
    EXPECT_THAT(refusal_of(config, 2), HasSubstr("is not a valid name on a bus"));
}

TEST(LoopParts, OnePortAtTheSameAddressOfTwoLinksIsNotShared) {
    PublisherConfig config = pattern_of("0-9");
    const auto refusal_at = [&](const std::string& first, const std::string& second) {
        config.listen = {{first, 7000}, {second, 7000}};
        return refusal_of(config, 1);
    };
    EXPECT_EQ(refusal_at("fe80::1%eth0", "fe80::1%eth1"), "no refusal");
    EXPECT_THAT(refusal_at("fe80::1%eth0", "fe80::1%eth0"), HasSubstr("is used twice"));
    EXPECT_THAT(refusal_at("fe80::1%eth0", "::"), HasSubstr("is taken by [fe80::1%eth0]:7000"));
}

TEST(LoopParts, TheirReportsAreOne) {
    PublishReport first{.name = "loop 0",
                        .provider = "tcp",
                        .mode = "buffered",
                        .end = "finished",
                        .throughput = {.messages = 10, .bytes = 400, .seconds = 2},
                        .without_subscribers = 1,
                        .again = 2,
                        .dropped = 3,
                        .pages = 4,
                        .disconnected = 5,
                        .unconfirmed = 6,
                        .triggers = {{.name = "a", .events = 5, .put_off_s = 0.5}},
                        .fids = {{Fid{1}, 10}, {Fid{4}, 1}}};
    PublishReport second = first;
    second.end = "interrupted";
    second.throughput.seconds = 3;
    second.triggers.front().events = 0;
    second.fids = {{Fid{2}, 11}};
    second.faults.emplace().missing = 7;
    const PublishReport sum = sum_of({first, second}, "hits");
    EXPECT_EQ(sum.name, "hits");
    EXPECT_EQ(sum.loops, 2U);
    EXPECT_EQ(sum.provider, "tcp");
    EXPECT_EQ(sum.end, "interrupted");
    EXPECT_EQ(sum.throughput.messages, 20U);
    EXPECT_EQ(sum.throughput.bytes, 800U);
    EXPECT_DOUBLE_EQ(sum.throughput.seconds, 3);
    EXPECT_EQ(sum.without_subscribers, 2U);
    EXPECT_EQ(sum.again, 4U);
    EXPECT_EQ(sum.dropped, 6U);
    EXPECT_EQ(sum.pages, 8U);
    EXPECT_EQ(sum.disconnected, 10U);
    EXPECT_EQ(sum.unconfirmed, 12U);
    EXPECT_EQ(sum.triggers.front().events, 5U);
    EXPECT_EQ(sum.faults->missing, 7U);
    ASSERT_EQ(sum.fids.size(), 3U);
    EXPECT_EQ(sum.fids[1].fid, Fid{2});
    second.end = "failed";
    EXPECT_EQ(sum_of({first, second}, "").end, "failed");
    EXPECT_EQ(sum_of({second, first}, "").end, "failed");
}

TEST(PublishOutcome, OneSubscriberOfOnePublisherThatHasNotConfirmedIsIncomplete) {
    const PublishReport all_have_it{.disconnected = 1};
    const PublishReport one_has_not{.unconfirmed = 1};
    EXPECT_EQ(outcome({all_have_it, all_have_it}, false), ExitStatus::done)
        << "subscribers lost earlier were lost by policy or by their own failure";
    EXPECT_EQ(outcome({all_have_it, one_has_not}, false), ExitStatus::incomplete);
    EXPECT_EQ(outcome({one_has_not}, true), ExitStatus::failed);
}

} // namespace
} // namespace apps::loop_parts_test
