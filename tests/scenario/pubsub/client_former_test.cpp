// SPDX-License-Identifier: Apache-2.0

// Publishers that have left the registry: whose counters are kept, for how long, and what is still
// reported about forgotten ones.

#include "tests/scenario/pubsub/several_publishers.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::test::client_former_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FormerPublishers : public SeveralPublishers {
  protected:
    void follow(Subscriptions::Options found) {
        found.bus = &bus;
        all = std::make_unique<Subscriptions>(transport(), found, actor);
        all->subscribe(range(0, 99));
    }
    void follow(std::size_t remembered_fids) {
        Subscriptions::Options found = options({});
        found.remembered_fids_limit = remembered_fids;
        follow(found);
    }
    void arrive(const std::string& name, const Made& made, const FidRange& fids) {
        const std::size_t before = actor.subscribed[name].size();
        announce(name, made, fids);
        ASSERT_TRUE(run_until([&] { return actor.subscribed[name].size() > before; }));
    }
    void get(Made& from, Fid fid) {
        const std::size_t before = actor.message_count;
        send(from, fid);
        ASSERT_TRUE(run_until([&] { return actor.message_count > before; }));
    }
    // Announces it at an unused address, so that its connection is lost.
    void leave(const std::string& name, Made& made) {
        const std::size_t before = made.actor.closed.size();
        Announcement moved{.name = name, .fids = {{.fids = range(0, 99), .meaning = {}}}};
        moved.addresses = {"tcp:" + to_string(netio::Address{bed.address().host, 9})};
        bus.tell().on_announced(moved);
        bus.tell().on_gone(name);
        ASSERT_TRUE(run_until([&] { return made.actor.closed.size() > before; }));
    }
    // A publisher starts, sends this many messages of one fid, and ends.
    Made& visit(const std::string& name, std::uint64_t fid, int messages) {
        Made& made = publisher();
        arrive(name, made, range(fid, fid));
        for (int i = 0; i < messages; ++i)
            get(made, Fid{fid});
        leave(name, made);
        return made;
    }
    static void publish_for_nobody(Made& made, Fid fid, int count) {
        for (int i = 0; i < count; ++i)
            ASSERT_EQ(publish(*made.socket, fid, 0, 40), Status::no_subscribers);
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const Subscriptions::PublisherStats& stats : all->publisher_stats())
            names.push_back(stats.source.name);
        return names;
    }

    std::unique_ptr<Subscriptions> all;
};

INSTANTIATE_TEST_SUITE_P(Beds, FormerPublishers, netio::test::simulated_beds(), bed_name);

TEST_P(FormerPublishers, AreForgottenInOrderOfDepartureAndTheirSumsRemain) {
    follow(2);
    visit("a", 1, 2);
    visit("b", 2, 3);
    EXPECT_THAT(names(), ElementsAre("a", "b")) << "as many fids as the limit allows";
    visit("c", 3, 4);
    EXPECT_THAT(names(), ElementsAre("b", "c", ""));
    EXPECT_EQ(all->publisher_stats().back().connections, 1U);
    visit("d", 4, 1);
    EXPECT_THAT(names(), ElementsAre("c", "d", ""));
    const Subscriptions::PublisherStats forgotten = all->publisher_stats().back();
    EXPECT_EQ(forgotten.connections, 2U);
    EXPECT_EQ(forgotten.fids.size(), 2U);
    EXPECT_EQ(forgotten.fids.find(Fid{1})->messages, 2U);
    EXPECT_EQ(forgotten.fids.find(Fid{2})->messages, 3U);
    EXPECT_EQ(all->sums().messages, 10U);
    EXPECT_EQ(all->sums().bytes, 400U);
    const SubscriptionsSnapshot snapshot = all->snapshot();
    EXPECT_EQ(snapshot.publishers.back().name, "");
    EXPECT_EQ(snapshot.publishers.back().messages, 5U);
    EXPECT_EQ(snapshot.publishers.back().bytes, 200U);
    EXPECT_EQ(snapshot.publishers.back().connections, 2U);
    EXPECT_EQ(snapshot.fid_count, 4U);
    EXPECT_EQ(all->snapshot(2).fid_count, 4U) << "forgotten publishers count, too";
}

TEST_P(FormerPublishers, AreAsManyAsMayBeConnected) {
    Subscriptions::Options found = options({});
    found.publisher_limit = 2;
    follow(found);
    visit("a", 1, 1);
    visit("b", 2, 1);
    EXPECT_THAT(names(), ElementsAre("a", "b"));
    visit("c", 3, 1);
    EXPECT_THAT(names(), ElementsAre("b", "c", ""));
}

TEST_P(FormerPublishers, ThatComeAndGoUseNoMoreMemoryEachTime) {
    follow(1);
    Made& one = visit("a", 1, 1);
    for (int i = 0; i < 3; ++i) {
        arrive("a", one, range(1, 1));
        EXPECT_THAT(names(), ElementsAre("a"));
        leave("a", one);
        EXPECT_THAT(names(), ElementsAre("a")) << "it is still remembered";
    }
    EXPECT_EQ(all->publisher_stats().front().connections, 4U);
    EXPECT_THAT(actor.lost_while_disconnected, IsEmpty());
}

TEST_P(FormerPublishers, KeepTheirMemoryWhateverIsUnsubscribed) {
    follow(2);
    visit("a", 1, 1);
    all->unsubscribe(range(50, 60));
    visit("b", 2, 1);
    all->unsubscribe(range(70, 80));
    EXPECT_THAT(names(), ElementsAre("a", "b"));
    visit("c", 3, 1);
    EXPECT_THAT(names(), ElementsAre("b", "c", ""));
}

TEST_P(FormerPublishers, ContinueWithTheirOwnCounters) {
    follow(1000);
    Made& one = visit("a", 1, 1);
    Made& other = visit("b", 2, 1);
    publish_for_nobody(one, Fid{1}, 3);
    publish_for_nobody(other, Fid{2}, 5);
    arrive("b", other, range(2, 2));
    EXPECT_EQ(actor.lost_while_disconnected, (std::map<Fid, std::uint64_t>{{Fid{2}, 5U}}));
    arrive("a", one, range(1, 1));
    EXPECT_EQ(actor.lost_while_disconnected,
              (std::map<Fid, std::uint64_t>{{Fid{1}, 3U}, {Fid{2}, 5U}}));
    EXPECT_THAT(names(), ElementsAre("b", "a")) << "in the order of their arrival";
    EXPECT_THAT(actor.changes, IsEmpty());
}

TEST_P(FormerPublishers, AreReportedWithAllLossesWhenForgotten) {
    follow(1);
    Made& one = visit("a", 1, 1);
    publish_for_nobody(one, Fid{1}, 3);
    arrive("a", one, range(1, 1));
    leave("a", one);
    visit("b", 2, 1);
    EXPECT_THAT(names(), ElementsAre("b", ""));
    EXPECT_EQ(all->publisher_stats().back().fids.find(Fid{1})->lost, 3U);
    EXPECT_EQ(all->snapshot().publishers.back().lost, 3U);
}

// The number of fids with their own row is limited over all connections.
TEST_P(FormerPublishers, AreReportedWithChangesAndSurplusFidsWhenForgotten) {
    Subscriptions::Options found = options({});
    found.socket.fid_limit = 1;
    found.remembered_fids_limit = 0;
    follow(found);
    Made& killed = publisher();
    arrive("a", killed, range(1, 2));
    get(killed, Fid{1});
    std::string provider;
    all->for_each([&](const Subscriptions::Source&, const SubscribeSocket& socket) {
        provider = socket.provider();
    });
    EXPECT_TRUE(all->publisher_stats().front().seen.pages);
    EXPECT_EQ(all->publisher_stats().front().provider, provider);
    killed.socket.reset();
    Made& next = publisher(killed.address);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    get(next, Fid{2});
    leave("a", next);
    ASSERT_THAT(names(), ElementsAre(""));
    Subscriptions::PublisherStats forgotten = all->publisher_stats().back();
    EXPECT_EQ(forgotten.connections, 2U);
    EXPECT_EQ(forgotten.changes, 1U);
    EXPECT_EQ(forgotten.unknown_tails, 2U) << "one of the killed publisher and one of its own";
    EXPECT_EQ(forgotten.fids.size(), 1U);
    EXPECT_EQ(forgotten.others.messages, 1U);
    EXPECT_TRUE(forgotten.seen.pages);
    EXPECT_EQ(forgotten.provider, provider);
    visit("b", 3, 2);
    forgotten = all->publisher_stats().back();
    EXPECT_EQ(forgotten.connections, 3U);
    EXPECT_EQ(forgotten.fids.size(), 1U);
    EXPECT_EQ(forgotten.others.messages, 3U);
    EXPECT_EQ(all->sums().messages, 4U);
}

} // namespace
} // namespace netio::pubsub::test::client_former_test
