// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/outlet.hpp"

#include <gmock/gmock.h>

namespace apps::bus_place_test {
namespace {

using netio::Endpoint;
using netio::pubsub::Announcement;
using netio::pubsub::Fid;
using testing::ElementsAre;
using testing::HasSubstr;

PublisherConfig config_of(const std::string& bus) {
    return parse_publish_config("listen: 127.0.0.1:0\nmode: buffered\nbus: " + bus +
                                    "\nstreams:\n"
                                    "  - {fids: 0-3, source: pattern, size: 40, meaning: hits}\n"
                                    "  - {fids: 9, source: pattern, size: 40}\n"
                                    "  - {fids: 4, source: pattern, size: 40, meaning: hits}\n",
                                "test.yaml", "/folder")
        .publishers.front();
}

const std::vector<Endpoint> endpoints{{"verbs", {"10.0.0.1", 4000}}, {"tcp", {"0.0.0.0", 4001}}};
const Process process{.host = "felix 01", .pid = 42, .started = "then"};

TEST(BusPlace, AnAnnouncementFollowsTheConfiguration) {
    const Announcement said = announcement_of(config_of("bus"), endpoints, process);
    EXPECT_EQ(said.name, "felix-01-42-0");
    EXPECT_EQ(said.mode, "buffered");
    EXPECT_EQ(said.parameters.at("page_size"), "262144");
    ASSERT_EQ(said.fids.size(), 2U);
    EXPECT_EQ(said.fids[0].fids, (netio::pubsub::FidRange{Fid{9}, Fid{9}}));
    EXPECT_EQ(said.fids[1].fids, (netio::pubsub::FidRange{Fid{0}, Fid{4}}));
    EXPECT_EQ(said.fids[1].meaning, "hits");
}

TEST(BusPlace, TheWildcardAddressIsAnnouncedAsTheHost) {
    EXPECT_THAT(announcement_of(config_of("bus"), endpoints, process).addresses,
                ElementsAre("verbs:10.0.0.1:4000", "tcp:felix 01:4001"));
    EXPECT_THAT(
        announcement_of(config_of("{at: bus, advertise: daq}"), endpoints, process).addresses,
        ElementsAre("verbs:10.0.0.1:4000", "tcp:daq:4001"));
    const std::vector<Endpoint> ipv6{{"tcp", {"0::0", 4001}}, {"tcp", {"fe80::1%eth0", 4002}}};
    EXPECT_THAT(announcement_of(config_of("bus"), ipv6, process).addresses,
                ElementsAre("tcp:felix 01:4001", "tcp:[fe80::1%eth0]:4002"));
}

TEST(BusPlace, TheAddressOfTheMetricsIsAnnounced) {
    PublisherConfig config = config_of("{at: bus, advertise: daq}");
    config.metrics.listen = "0.0.0.0:9100";
    EXPECT_EQ(announcement_of(config, endpoints, process).metrics, "daq:9100");
    config.metrics.listen = "127.0.0.1:0"; // any port: the number is not yet known
    EXPECT_EQ(announcement_of(config, endpoints, process).metrics, "");
}

TEST(BusPlace, TooManyFidRangesForABusAreRefusedWithARemedy) {
    PublisherConfig config = config_of("bus");
    auto& fids = config.streams.front().fids;
    for (std::uint64_t fid = 100; fids.size() < netio::pubsub::announced_ranges_limit - 1; fid += 2)
        fids.push_back({Fid{fid}, Fid{fid}});
    EXPECT_NO_THROW(refuse_unannounceable(config));
    fids.push_back({Fid{1000000}, Fid{1000000}});
    try {
        refuse_unannounceable(config);
        ADD_FAILURE() << "the announcement is too large";
    } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("test.yaml:3:6: bus: the fids are 65537 separate ranges"));
        EXPECT_THAT(error.what(), HasSubstr("or publish them without a bus"));
    }
    config.bus.where.clear();
    EXPECT_NO_THROW(refuse_unannounceable(config));
}

TEST(BusPlace, ItsPlaceIsConfigured) {
    EXPECT_EQ(config_of("bus").bus.where, "/folder/bus");
    const BusConfig bus = config_of("{at: /bus, name: first}").bus;
    EXPECT_EQ(bus.where, "/bus");
    EXPECT_EQ(bus.name, "first");
}

TEST(BusPlace, AnErrorInItHasItsPosition) {
    const auto refusal = [](const std::string& bus) -> std::string {
        try {
            config_of(bus);
        } catch (const ConfigError& error) {
            return error.what();
        }
        return "it is taken";
    };
    EXPECT_THAT(refusal("{at: bus, name: ../x}"), HasSubstr("test.yaml:3:22: bus.name: '../x'"));
    EXPECT_THAT(refusal("{name: x}"), HasSubstr("key 'at' is missing"));
    EXPECT_THAT(refusal("{at: bus, lease_ms: 1}"), HasSubstr("unknown key"));
}

} // namespace
} // namespace apps::bus_place_test
