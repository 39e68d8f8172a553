// SPDX-License-Identifier: Apache-2.0

// The snapshots of a running subscriber agree with its final counters: over ended connections,
// departed publishers and withdrawn subscriptions.

#include "tests/scenario/pubsub/several_publishers.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace netio::pubsub::test::subscriptions_snapshot_test {
namespace {

using testing::SizeIs;

class SubscriptionSnapshots : public SeveralPublishers {
  protected:
    // Compares the snapshot with publisher_stats(), which copies everything, and with the last
    // snapshot.
    SubscriptionsSnapshot look(Subscriptions& all) {
        SubscriptionsSnapshot now = all.snapshot();
        std::map<Fid, Account::Row> rows;
        std::map<std::string, Account::Row> sources;
        std::map<std::string, std::uint64_t> connections;
        for (const Subscriptions::PublisherStats& stats : all.publisher_stats()) {
            connections[stats.source.name] = stats.connections;
            Account::Row& source = sources[stats.source.name];
            stats.fids.for_each([&](Fid fid, const Account::Row& row) {
                for (Account::Row* const sum : {&rows[fid], &source}) {
                    sum->messages += row.messages;
                    sum->bytes += row.bytes;
                    sum->lost += row.lost;
                }
            });
        }
        EXPECT_EQ(now.fids.size(), rows.size());
        EXPECT_EQ(now.fid_count, rows.size());
        for (const ReceivedFidSnapshot& fid : now.fids) {
            EXPECT_EQ(fid.messages, rows[fid.fid].messages) << to_string(fid.fid);
            EXPECT_EQ(fid.bytes, rows[fid.fid].bytes) << to_string(fid.fid);
            EXPECT_EQ(fid.lost, rows[fid.fid].lost) << to_string(fid.fid);
        }
        for (const RemotePublisherSnapshot& source : now.publishers) {
            EXPECT_EQ(source.messages, sources[source.name].messages) << source.name;
            EXPECT_EQ(source.bytes, sources[source.name].bytes) << source.name;
            EXPECT_EQ(source.lost, sources[source.name].lost) << source.name;
            EXPECT_EQ(source.connections, connections[source.name]) << source.name;
        }
        for (const RemotePublisherSnapshot& before : last_.publishers) {
            const auto same =
                std::ranges::find(now.publishers, before.name, &RemotePublisherSnapshot::name);
            EXPECT_NE(same, now.publishers.end()) << before.name << " is missing";
            if (same == now.publishers.end()) continue;
            EXPECT_GE(same->pauses, before.pauses);
        }
        last_ = now;
        return now;
    }
    void get(Made& one, Fid fid) {
        const std::size_t before = actor.message_count;
        send(one, fid);
        ASSERT_TRUE(run_until([&] { return actor.message_count == before + 1; }));
    }
    // Publishes while the subscriber is not connected.
    static void lose(Made& one, Fid fid, int count) {
        for (int i = 0; i < count; ++i)
            ASSERT_EQ(publish(*one.socket, fid, 0, 40), Status::no_subscribers);
    }
    Subscriptions::Options on_bus() {
        Subscriptions::Options found = options({});
        found.bus = &bus;
        return found;
    }

    SubscriptionsSnapshot last_;
};

INSTANTIATE_TEST_SUITE_P(Beds, SubscriptionSnapshots, all_beds(), bed_name);

TEST_P(SubscriptionSnapshots, ContinueWithAnotherPublisher) {
    Made& one = publisher();
    Subscriptions all{transport(), options({one.address}), actor};
    EXPECT_THAT(look(all).publishers, SizeIs(1)) << "it is tried";
    all.subscribe(range(1, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    get(one, Fid{1});
    get(one, Fid{2});
    EXPECT_TRUE(look(all).publishers[0].connected);
    all.pause();
    EXPECT_TRUE(look(all).publishers[0].paused);
    all.resume();
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    EXPECT_FALSE(look(all).publishers[0].connected);
    Made& next = publisher(one.address);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    get(next, Fid{1});
    const SubscriptionsSnapshot now = look(all);
    EXPECT_EQ(now.publishers[0].messages, 3U);
    EXPECT_EQ(now.publishers[0].connections, 2U);
    EXPECT_EQ(now.publishers[0].pauses, 1U);
    EXPECT_EQ(now.fids[0].messages, 2U);
}

TEST_P(SubscriptionSnapshots, ExcludePublishersWithoutRequests) {
    Subscriptions all{transport(), on_bus(), actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    Made& other = publisher();
    announce("one", one, range(0, 9));
    announce("other", other, range(10, 19));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    const SubscriptionsSnapshot now = look(all);
    ASSERT_THAT(now.publishers, SizeIs(1));
    EXPECT_EQ(now.publishers[0].name, "one");
    all.subscribe(range(10, 19));
    EXPECT_THAT(look(all).publishers, SizeIs(2));
}

// Remembered or not: the sums of forgotten publishers remain.
TEST_P(SubscriptionSnapshots, KeepTheCountersOfADepartedPublisher) {
    for (const std::size_t remembered : {1000U, 0U}) {
        SCOPED_TRACE(remembered);
        actor = {};
        last_ = {};
        Subscriptions::Options found = on_bus();
        found.remembered_fids_limit = remembered;
        Subscriptions all{transport(), found, actor};
        all.subscribe(range(0, 9));
        Made& one = publisher();
        announce("one", one, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        get(one, Fid{1});
        all.pause();
        all.resume();
        // Announces it at an unused address, so that its connection is lost.
        Announcement moved{.name = "one", .fids = {{.fids = range(0, 9), .meaning = {}}}};
        moved.addresses = {"tcp:" + to_string(netio::Address{bed.address().host, 9})};
        bus.tell().on_announced(moved);
        bus.tell().on_gone("one");
        ASSERT_TRUE(run_until([&] { return one.actor.closed.size() == 1; }));
        SubscriptionsSnapshot now = all.snapshot();
        ASSERT_THAT(now.publishers, SizeIs(1));
        EXPECT_EQ(now.publishers[0].name, remembered > 0 ? "one" : "");
        EXPECT_EQ(now.publishers[0].messages, 1U);
        EXPECT_EQ(now.publishers[0].pauses, 1U);
        EXPECT_EQ(now.fids.at(0).messages, 1U);
        EXPECT_EQ(now.fid_count, 1U);
        lose(one, Fid{1}, 3);
        announce("one", one, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
        get(one, Fid{1});
        now = look(all);
        EXPECT_THAT(now.publishers, SizeIs(remembered > 0 ? 1 : 2));
        EXPECT_EQ(now.publishers.back().lost, remembered > 0 ? 3U : 0U);
        EXPECT_EQ(now.fids.at(0).messages, 2U);
        EXPECT_EQ(now.fids.at(0).lost, remembered > 0 ? 3U : 0U);
    }
}

TEST_P(SubscriptionSnapshots, KeepTheCountersOfAMovedOrUnsubscribedFid) {
    Subscriptions all{transport(), on_bus(), actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    Made& other = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    get(one, Fid{1});
    get(one, Fid{2});
    announce("one", one, range(2, 9));
    announce("other", other, range(1, 1));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    ASSERT_TRUE(run_until([&] { return !one.actor.unsubscribed.empty(); }));
    get(other, Fid{1});
    ASSERT_TRUE(run_until([&] { return look(all).publishers.size() == 2; }));
    all.unsubscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return one.actor.unsubscribed.size() == 2; }));
    get(other, Fid{1});
    const SubscriptionsSnapshot now = look(all);
    ASSERT_THAT(now.fids, SizeIs(2));
    EXPECT_EQ(now.fids[0].messages, 3U);
    EXPECT_EQ(now.fids[1].messages, 1U);
}

TEST_P(SubscriptionSnapshots, CountAFidOnceInsideOnUnsubscribed) {
    Made& one = publisher();
    Subscriptions all{transport(), options({one.address}), actor};
    all.subscribe(range(1, 2));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    get(one, Fid{1});
    get(one, Fid{2});
    std::optional<SubscriptionsSnapshot> then;
    std::uint64_t received = 0;
    actor.at_unsubscribed = [&] {
        then = all.snapshot();
        received = all.publisher_stats().at(0).fids.find(Fid{2})->messages;
    };
    all.unsubscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return then.has_value(); }));
    EXPECT_EQ(received, 1U);
    EXPECT_EQ(then->fids.at(1).messages, 1U);
    EXPECT_EQ(all.publisher_stats().at(0).fids.find(Fid{2})->messages, 1U);
    EXPECT_EQ(look(all).fids.at(1).messages, 1U);
}

// The publisher is announced at another address while its connection reports the end of a
// subscription. Its counts remain.
TEST_P(SubscriptionSnapshots, AreTheSameIfThePublisherMovesInsideOnUnsubscribed) {
    Made& one = publisher();
    auto all = std::make_unique<Subscriptions>(transport(), on_bus(), actor);
    all->subscribe(range(1, 2));
    announce("one", one, range(1, 2));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    get(one, Fid{2});
    actor.at_unsubscribed = [&] {
        Announcement moved{.name = "one", .fids = {{.fids = range(1, 2), .meaning = {}}}};
        moved.addresses = {"tcp:" + to_string(netio::Address{bed.address().host, 9})};
        bus.tell().on_announced(moved);
    };
    all->unsubscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return one.actor.closed.size() == 1; }));
    EXPECT_EQ(all->publisher_stats().at(0).fids.find(Fid{2})->messages, 1U);
}

TEST_P(SubscriptionSnapshots, EndIfTheirObjectIsDestroyedInsideOnUnsubscribed) {
    Made& one = publisher();
    auto all = std::make_unique<Subscriptions>(transport(), options({one.address}), actor);
    all->subscribe(range(1, 2));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    actor.at_unsubscribed = [&] { all.reset(); };
    all->unsubscribe(range(2, 2));
    EXPECT_TRUE(run_until([&] { return one.actor.closed.size() == 1; }));
}

TEST_P(SubscriptionSnapshots, LimitTheirFidsAndReportTheTotalNumber) {
    Made& one = publisher();
    Made& other = publisher();
    Subscriptions all{transport(), options({one.address, other.address}), actor};
    all.subscribe(range(1, 20));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    for (std::uint64_t fid = 1; fid <= 20; ++fid)
        get(one, Fid{fid});
    for (std::uint64_t fid = 1; fid <= 4; ++fid)
        get(other, Fid{fid});
    const SubscriptionsSnapshot few = all.snapshot(5);
    EXPECT_THAT(few.fids, SizeIs(5));
    EXPECT_EQ(few.fid_count, 24U) << "for each publisher that had them";
    const SubscriptionsSnapshot again = all.snapshot(5);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(again.fids[i].fid, few.fids[i].fid);
    EXPECT_EQ(look(all).fid_count, 20U);
}

TEST_P(SubscriptionSnapshots, ShowEachGivenPublisherOnce) {
    Made& one = publisher();
    EXPECT_THROW((Subscriptions{transport(), options({one.address, one.address}), actor}),
                 std::invalid_argument);
}

} // namespace
} // namespace netio::pubsub::test::subscriptions_snapshot_test
