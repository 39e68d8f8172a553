// SPDX-License-Identifier: Apache-2.0

// Publishers in a registry that only programs on their own machine can reach.

#include "pubsub/discovery/bus.hpp"
#include "tests/scenario/pubsub/several_publishers.hpp"

namespace netio::pubsub::test::other_machines_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// All listen at 127.0.0.1.
class OtherMachines : public SeveralPublishers {
  protected:
    OtherMachines() {
        Subscriptions::Options found = options({});
        found.bus = &bus;
        all = std::make_unique<Subscriptions>(transport(), found, actor);
        all->subscribe(range(0, 9));
    }
    void announce_on(const std::string& host, const std::string& name,
                     const std::vector<netio::Address>& addresses) {
        Announcement announcement{
            .name = name,
            .instance = 1,
            .fids = {{.fids = range(0, 9), .meaning = {}}},
            .host = host,
        };
        for (const netio::Address& each : addresses)
            announcement.addresses.push_back("tcp:" + to_string(each));
        bus.tell().on_announced(announcement);
    }

    std::unique_ptr<Subscriptions> all;
};

INSTANTIATE_TEST_SUITE_P(Beds, OtherMachines, netio::test::simulated_beds(), bed_name);

// A local publisher at the same address is a different one.
TEST_P(OtherMachines, AreNotSoughtOnThisMachine) {
    Made& one = publisher();
    announce_on(this_host() + "-2", "there", {one.address});
    EXPECT_THAT(actor.troubles, ElementsAre(HasSubstr("there on '" + this_host() + "-2'")));
    announce_on(this_host(), "here", {one.address});
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.connected, ElementsAre("here"));
    EXPECT_THAT(actor.contests, testing::IsEmpty());
}

TEST_P(OtherMachines, AreReachedAtTheirReachableAddresses) {
    Made& one = publisher();
    bed.sim()->name("there.example", {one.address.host});
    announce_on(
        this_host() + "-2", "there",
        {{.host = "127.0.0.1", .port = 1}, {.host = "there.example", .port = one.address.port}});
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.troubles, testing::IsEmpty());
    EXPECT_EQ(actor.closed, 0) << "no other address was tried";
    EXPECT_THAT(all->publisher_stats().front().source.address, HasSubstr("there.example"));
}

} // namespace
} // namespace netio::pubsub::test::other_machines_test
