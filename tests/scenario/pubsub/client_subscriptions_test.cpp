// SPDX-License-Identifier: Apache-2.0

// Which publishers a subscriber uses and when: after a pause, after its end, with few slots, and
// with the last announcement of each publisher.

#include "tests/scenario/pubsub/several_publishers.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::test::client_subscriptions_test {
namespace {

using netio::TimePoint;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class FollowedPublishers : public SeveralPublishers {
  protected:
    Subscriptions::Options on_bus(std::vector<netio::Address> given = {}) {
        Subscriptions::Options found = options(std::move(given));
        found.bus = &bus;
        return found;
    }
    bool are_subscribed(int count) {
        return run_until([&] { return actor.subscriptions == count; });
    }
    Made& dead() {
        Made& made = publisher();
        made.socket.reset();
        return made;
    }
    // Publishers admit clients with key 7; the subscriber has it.
    void use_keys() {
        files.permit(7, "services=pubsub fids=0-63:block connections=8");
        keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    }
    std::shared_ptr<const ClientKey> key() {
        return std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = {}});
    }

    netio::test::KeyFiles files;
};

INSTANTIATE_TEST_SUITE_P(Beds, FollowedPublishers, netio::test::simulated_beds(), bed_name);

TEST_P(FollowedPublishers, FoundDuringAPauseDeliverNothingUntilItResumes) {
    Subscriptions all{transport(), on_bus(), actor};
    all.subscribe(range(0, 9));
    all.pause();
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return one.actor.subscribed.size() == 1; }));
    send(one, Fid{1});
    bed.let_pass(1s);
    EXPECT_EQ(actor.message_count, 0U);
    EXPECT_TRUE(all.snapshot().publishers.at(0).paused);
    all.resume();
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
}

TEST_P(FollowedPublishers, AreAllAskedWhenSeveralSlotsBecomeFreeTogether) {
    Subscriptions::Options few = on_bus();
    few.publisher_limit = 2;
    Subscriptions all{transport(), few, actor};
    all.subscribe(range(0, 49));
    Made& one = publisher();
    Made& two = publisher();
    announce("one", one, range(0, 9));
    announce("two", two, range(10, 19));
    announce("three", publisher(), range(20, 29));
    announce("four", publisher(), range(30, 39));
    ASSERT_TRUE(are_subscribed(2));
    ASSERT_TRUE(run_until([&] { return actor.troubles.size() == 1; }));
    one.socket.reset();
    two.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed >= 2 && all.connected_count() == 0; }));
    bed.let_pass(100ms);
    EXPECT_THAT(actor.connected, UnorderedElementsAre("one", "two"))
        << "a publisher that may reconnect keeps its slot";
    bus.tell().on_gone("one");
    bus.tell().on_gone("two");
    ASSERT_TRUE(are_subscribed(4));
    EXPECT_THAT(actor.subscribed["three"], ElementsAre(range(20, 29)));
    EXPECT_THAT(actor.subscribed["four"], ElementsAre(range(30, 39)));
}

TEST_P(FollowedPublishers, ThatWereGivenKeepTheirSlots) {
    Made& one = publisher();
    Subscriptions::Options few = on_bus({one.address});
    few.publisher_limit = 1;
    few.socket.reconnect = false;
    Subscriptions all{transport(), few, actor};
    all.subscribe(range(0, 9));
    ASSERT_TRUE(are_subscribed(1));
    Made& two = publisher();
    announce("two", two, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.troubles.size() == 1; }));
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
    EXPECT_FALSE(actor.retrying);
    bed.let_pass(1s);
    EXPECT_EQ(two.actor.connected, 0);
    Made& back = publisher(one.address);
    all.subscribe(range(10, 10));
    ASSERT_TRUE(run_until([&] { return !back.actor.subscribed.empty(); }));
}

TEST_P(FollowedPublishers, AreNotUsedAfterItsEnd) {
    for (const bool has_one : {true, false}) {
        SCOPED_TRACE(has_one);
        actor = {};
        Subscriptions all{transport(), on_bus(), actor};
        all.subscribe(range(0, 49));
        if (has_one) {
            announce("one", publisher(), range(0, 9));
            ASSERT_TRUE(are_subscribed(1));
        }
        Made& idle = publisher();
        announce("idle", idle, range(50, 59)); // not subscribed yet
        all.close();
        Made& two = publisher();
        announce("two", two, range(10, 19));
        all.subscribe(range(50, 59));
        ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
        all.close();
        bed.let_pass(1s);
        EXPECT_EQ(actor.ended, 1) << "the end is reported once";
        EXPECT_EQ(two.actor.connected, 0);
        EXPECT_EQ(idle.actor.connected, 0);
        EXPECT_EQ(all.connected_count(), 0U);
    }
}

// A long announcement is processed at the same time, and this announcement comes in any of its
// turns.
TEST_P(FollowedPublishers, AreUsedByTheirLatestAnnouncementWheneverItComes) {
    Announcement many{.name = "long"};
    for (std::uint64_t i = 0; i < 1500; ++i)
        many.fids.push_back({.fids = range(2 * i, 2 * i), .meaning = {}});
    many.addresses = {"tcp:" + to_string(publisher().address)};
    Made& other = publisher();
    for (std::uint64_t turns = 0; turns < 12; ++turns) {
        SCOPED_TRACE(turns);
        actor = {};
        Subscriptions all{transport(), on_bus(), actor};
        all.subscribe(range(0, 99999));
        bus.tell().on_announced(many);
        Announcement ghost{.name = "ghost", .fids = {{.fids = range(9001, 9001), .meaning = {}}}};
        ghost.addresses = {"tcp:10.9.9.9:9"};
        for (std::uint64_t turn = 0; turn < turns; ++turn) {
            announce("other", other, range(9101 + turn, 9101 + turn));
            bus.tell().on_announced(ghost);
            loop().run_once();
        }
        announce("other", other, range(9999, 9999));
        bus.tell().on_gone("ghost");
        ASSERT_TRUE(run_until([&] {
            const std::vector<FidRange>& asked = actor.subscribed["other"];
            return std::ranges::find(asked, range(9999, 9999)) != asked.end();
        }));
        ASSERT_TRUE(run_until([&] { return actor.subscribed["long"].size() == 1500; }));
        bed.let_pass(10ms);
        EXPECT_EQ(publish(*other.socket, Fid{9999}, 0, 40), Status::ok);
        EXPECT_EQ(publish(*other.socket, Fid{9101}, 0, 40), Status::no_subscribers);
        for (const Subscriptions::PublisherStats& stats : all.publisher_stats())
            EXPECT_NE(stats.source.name, "ghost");
    }
}

// After a refusal, the pause depends on the present announcement, not on the former one.
TEST_P(FollowedPublishers, AreAskedOnlyForNewFidsAfterARefusalAndAnotherAnnouncement) {
    files.permit(7, "services=pubsub fids=0-63:block");
    files.revoke(7);
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    Made& one = publisher();
    Subscriptions::Options found = on_bus();
    found.socket.retry_limit = 100ms; // it is asked again after ten times this time
    found.socket.key = key();
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 29));
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.closed == 1 && !actor.retrying; }));
    one.socket.reset();
    use_keys();
    Made& next = publisher(one.address);
    announce("one", next, range(20, 29));
    ASSERT_TRUE(are_subscribed(1));
    bed.let_pass(3s);
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(20, 29)));
    EXPECT_EQ(publish(*next.socket, Fid{21}, 0, 40), Status::ok);
    EXPECT_EQ(publish(*next.socket, Fid{1}, 0, 40), Status::no_subscribers);
}

TEST_P(FollowedPublishers, ThatAreAwayTakeNoFidFromAnAuthenticatedOne) {
    use_keys();
    Subscriptions::Options found = on_bus();
    found.socket.retry_interval = 30s; // it does not try to reconnect until then
    found.socket.key = key();
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    Made& other = publisher();
    announce("one", one, range(0, 4));
    announce("other", other, range(5, 9));
    ASSERT_TRUE(are_subscribed(2));
    other.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed == 1; }));
    const TimePoint begin = loop().now();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(are_subscribed(3));
    EXPECT_LT(loop().now() - begin, 1s);
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(0, 4), range(5, 9)));
}

// Its former connection, at another address, does not prove that it is at this one.
TEST_P(FollowedPublishers, ThatMovedToAnUnusedAddressTakeNoFidFromAnother) {
    Subscriptions::Options found = on_bus();
    found.socket.retry_interval = 30s;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    announce("one", publisher(), range(0, 9));
    ASSERT_TRUE(are_subscribed(1));
    const TimePoint begin = loop().now();
    announce("one", dead(), range(0, 9));
    Made& other = publisher();
    announce("other", other, range(0, 9));
    ASSERT_TRUE(are_subscribed(2));
    EXPECT_LT(loop().now() - begin, 1s);
    EXPECT_THAT(actor.subscribed["other"], ElementsAre(range(0, 9)));
}

} // namespace
} // namespace netio::pubsub::test::client_subscriptions_test
