// SPDX-License-Identifier: Apache-2.0

// Silent hosts and one that answers are all announced with the same fids.

#include "tests/scenario/pubsub/false_publisher.hpp"
#include "tests/scenario/pubsub/several_publishers.hpp"
#include "tests/scenario/pubsub/silent_port.hpp"

namespace netio::pubsub::test::silent_claimants_test {
namespace {

using testing::ElementsAre;

class SilentClaimants : public SeveralPublishers {
  protected:
    SilentClaimants() {
        files_.permit(7, "services=pubsub fids=0-63:block connections=8");
        const auto key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files_.client(7), .protection = {}});
        Subscriptions::Options found = options({});
        found.bus = &bus;
        found.socket.key = key;
        all = std::make_unique<Subscriptions>(transport(), found, actor);
        all->subscribe(range(0, 9));
        for (int i = 0; i < 4; ++i)
            silent_.push_back(std::make_unique<SilentPort>(transport(), bed.address()));
        keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files_.site()});
    }
    void announce_silent(int count) {
        for (int i = 0; i < count; ++i) {
            Announcement announcement{.name = "a.false.word." + std::to_string(i),
                                      .fids = {{.fids = range(0, 63), .meaning = {}}}};
            for (const auto& port : silent_)
                announcement.addresses.push_back("tcp:" + to_string(port->address()));
            bus.tell().on_announced(announcement);
        }
    }
    void without_keys() {
        keys.reset();
        Subscriptions::Options found = options({});
        found.bus = &bus;
        all.reset();
        all = std::make_unique<Subscriptions>(transport(), found, actor);
        all->subscribe(range(0, 9));
    }
    netio::Address silent_address() const { return silent_.front()->address(); }
    // Measured in virtual time only.
    bool is_reached_within(Duration limit) {
        const TimePoint begin = loop().now();
        if (!run_until([&] { return actor.subscriptions > 0; })) return false;
        return bed.sim() == nullptr || loop().now() - begin <= limit;
    }

    std::unique_ptr<Subscriptions> all;

  private:
    netio::test::KeyFiles files_;
    std::vector<std::unique_ptr<SilentPort>> silent_;
};

INSTANTIATE_TEST_SUITE_P(Beds, SilentClaimants, netio::test::simulated_beds(), bed_name);

TEST_P(SilentClaimants, AreTriedWhileTheAnsweringOneHasTheFids) {
    announce_silent(5);
    Made& real = publisher();
    announce("real", real, range(0, 63));
    ASSERT_TRUE(is_reached_within(5s)) << "duration of an attempt";
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 9)));
    send(real, Fid{2});
    ASSERT_TRUE(run_until([&] { return actor.message_count > 0; }));
    // Later announcements with these fids get none.
    announce_silent(6);
    bool over = false;
    Timer later{loop(), [&] { over = true; }};
    later.start(60s);
    ASSERT_TRUE(run_until([&] { return over; }));
    send(real, Fid{3});
    ASSERT_TRUE(run_until([&] { return actor.message_count > 1; }));
    EXPECT_EQ(actor.subscriptions, 1);
}

TEST_P(SilentClaimants, TakeTurnsAndSoDoTheAddressesOfEach) {
    announce_silent(20);
    Made& real = publisher();
    elsewhere = {silent_address()};
    announce("real", real, range(0, 63));
    ASSERT_TRUE(is_reached_within(30s)) << "two rounds of three attempts";
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 9)));
}

TEST_P(SilentClaimants, TakeNoFidsThatTheAnsweringOneClaimsLater) {
    Made& real = publisher();
    announce("real", real, range(0, 4));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    announce_silent(1);
    const TimePoint begin = loop().now();
    announce("real", real, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_LT(loop().now() - begin, 1s) << "in virtual time: it waits for none of their attempts";
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 4), range(5, 9)));
}

// One of its connections does not confirm its end, so the duration of an attempt passes.
TEST_P(SilentClaimants, AreNotTriedAnyMoreOnceTheSubscriberCloses) {
    without_keys();
    FalsePublisher unmoved{transport(), bed.address()};
    bus.tell().on_announced({.name = "unmoved",
                             .fids = {{.fids = range(64, 64), .meaning = {}}},
                             .addresses = {"tcp:" + to_string(unmoved.address())}});
    all->subscribe(range(64, 64));
    ASSERT_TRUE(run_until([&] { return unmoved.has_granted(); }));
    announce_silent(1);
    Made& real = publisher();
    announce("real", real, range(0, 63));
    bool over = false;
    Timer later{loop(), [&] { over = true; }};
    later.start(4900ms); // an attempt takes 5 s
    ASSERT_TRUE(run_until([&] { return over; }));
    all->close();
    ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
    EXPECT_TRUE(real.actor.subscribed.empty());
}

TEST_P(SilentClaimants, WithoutKeysHaveTheFidsForAnAttemptEach) {
    without_keys();
    announce_silent(2);
    Made& real = publisher();
    announce("real", real, range(0, 63));
    ASSERT_TRUE(is_reached_within(11s));
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 9)));
}

// Then an existing connection, here for another fid, proves nothing.
TEST_P(SilentClaimants, WithoutKeysHaveTheFidsAlsoIfAnotherIsConnected) {
    without_keys();
    announce_silent(2);
    all->subscribe(range(64, 64));
    Made& real = publisher();
    announce("real", real, range(0, 64));
    const TimePoint begin = loop().now();
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(64, 64), range(0, 9)));
    EXPECT_GE(loop().now() - begin, 10s) << "an attempt each";
}

} // namespace
} // namespace netio::pubsub::test::silent_claimants_test
