// SPDX-License-Identifier: Apache-2.0

// Several publishers used as one: by address, and found in a registry.

#include "tests/scenario/pubsub/several_publishers.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::subscriptions_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(Beds, SeveralPublishers, all_beds(), bed_name);

TEST_P(SeveralPublishers, ByAddressEachGetsARequestForAllFids) {
    Made& one = publisher();
    Made& other = publisher();
    Subscriptions all{transport(), options({one.address, other.address}), actor};
    all.subscribe(range(1, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    send(one, Fid{1});
    send(other, Fid{2});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 2; }));
    EXPECT_EQ(actor.messages, (std::map<Fid, std::uint64_t>{{Fid{1}, 1U}, {Fid{2}, 1U}}));
    EXPECT_EQ(all.sums().messages, 2U);
    one.socket->close();
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    EXPECT_TRUE(actor.retrying);
    send(other, Fid{2});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 3; }));
    all.close();
    ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
    EXPECT_EQ(all.connected_count(), 0U);
}

TEST_P(SeveralPublishers, TheCountersOfARestartedPublisherShowTheChange) {
    Made& one = publisher();
    Subscriptions all{transport(), options({one.address}), actor};
    all.subscribe(range(1, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
    one.socket.reset();
    Made& next = publisher(one.address);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    send(next, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 2; }));
    const std::vector<Subscriptions::PublisherStats> stats = all.publisher_stats();
    ASSERT_THAT(stats, SizeIs(1));
    EXPECT_EQ(stats[0].connections, 2U);
    EXPECT_EQ(stats[0].changes, 1U);
    EXPECT_EQ(stats[0].unknown_tails, 1U);
    EXPECT_EQ(stats[0].fids.find(Fid{1})->messages, 2U);
    EXPECT_TRUE(stats[0].connected);
}

TEST_P(SeveralPublishers, AfterCloseAnUnconfirmedTailOfADepartedPublisherIsNotLost) {
    for (const bool closes : {true, false}) {
        actor = {};
        Made& one = publisher();
        Subscriptions::Options once = options({one.address});
        once.socket.reconnect = false;
        Subscriptions all{transport(), once, actor};
        all.subscribe(range(1, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        send(one, Fid{1});
        ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
        if (closes) all.close();
        one.socket.reset();
        ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
        EXPECT_EQ(all.publisher_stats().front().unknown_tails, closes ? 0U : 1U);
    }
}

TEST_P(SeveralPublishers, APublisherFoundLaterIsAskedForItsFids) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(5, 14));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(5, 9)));
    Made& other = publisher();
    announce("other", other, range(8, 19));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["other"], ElementsAre(range(10, 14)));
    EXPECT_THAT(actor.contests, ElementsAre("one other 2 from 0x8-0x9"));
    send(one, Fid{9});
    send(other, Fid{10});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 2; }));
}

TEST_P(SeveralPublishers, ALongAnnouncementTakesTurnsAndTheLatestOfOthersFollows) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 99999));
    Made& one = publisher();
    Made& other = publisher();
    Announcement many{.name = "long"};
    for (std::uint64_t i = 0; i < 3000; ++i)
        many.fids.push_back({.fids = range(2 * i, 2 * i), .meaning = {}});
    many.addresses = {"tcp:" + to_string(one.address)};
    bus.tell().on_announced(many);
    announce("other", other, range(50000, 60000));
    announce("gone", other, range(70000, 70000));
    announce("other", other, range(50000, 50000));
    bus.tell().on_gone("gone");
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 3001; }));
    EXPECT_THAT(actor.subscribed["long"], SizeIs(3000));
    EXPECT_THAT(actor.subscribed["other"], ElementsAre(range(50000, 50000)));
    EXPECT_THAT(all.publisher_stats(), SizeIs(2));
}

TEST_P(SeveralPublishers, AMovedFidIsFollowedAndAnExpiredPublisherIsDropped) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    Made& other = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
    announce("other", other, range(0, 9));
    bus.tell().on_gone("one");
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 2; })) << "data continues";
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["other"], ElementsAre(range(0, 9)));
    EXPECT_FALSE(actor.retrying);
    send(other, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 3; }));
    EXPECT_EQ(all.sums().messages, 3U) << "including those of the departed one";
    bus.tell().on_warning("the directory cannot be read");
    EXPECT_THAT(actor.troubles, SizeIs(1));
}

TEST_P(SeveralPublishers, FidsThatNoPublisherAnnouncesAreReportedOnceAMinute) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    found.socket.silence_hint = std::chrono::milliseconds{10};
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    all.subscribe(range(10, 12), SlowPolicy::drop);
    Made& one = publisher();
    announce("one", one, range(0, 4));
    bus.tell().on_caught_up();
    ASSERT_TRUE(run_until([&] { return !actor.troubles.empty() && actor.subscriptions > 0; }));
    EXPECT_THAT(actor.troubles, ElementsAre(testing::AllOf(
                                    testing::HasSubstr("no publisher announces fids 0x5-0xc;"),
                                    testing::HasSubstr("netio list"))));
    all.subscribe(range(100, 101));
    one.socket.reset();
    bus.tell().on_gone("one");
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    EXPECT_THAT(actor.troubles, SizeIs(1));
}

TEST_P(SeveralPublishers, ADestroyedSubscriberGetsNoRegistryCallbacks) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    auto all = std::make_unique<Subscriptions>(transport(), found, actor);
    EXPECT_TRUE(bus.is_watched());
    all.reset();
    EXPECT_FALSE(bus.is_watched());
}

TEST_P(SeveralPublishers, AnotherAddressUnderTheSameNameIsConnectedTo) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    Made& next = publisher();
    announce("one", next, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    send(next, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
}

// Its lease expired or it moved; while its process lives, its counters continue.
TEST_P(SeveralPublishers, LossesDuringAnAbsenceFromTheRegistryAreReportedExactly) {
    for (const std::size_t remembered : {1000U, 0U}) {
        SCOPED_TRACE(remembered);
        actor = {};
        Subscriptions::Options found = options({});
        found.bus = &bus;
        found.remembered_fids_limit = remembered;
        Subscriptions all{transport(), found, actor};
        all.subscribe(range(0, 9));
        Made& one = publisher();
        announce("one", one, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        send(one, Fid{1});
        ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
        // Announces it at an unused address, so that its connection is lost.
        Announcement moved{.name = "one", .fids = {{.fids = range(0, 9), .meaning = {}}}};
        moved.addresses = {"tcp:" + to_string(netio::Address{bed.address().host, 9})};
        bus.tell().on_announced(moved);
        bus.tell().on_gone("one");
        EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U) << "while it is away";
        ASSERT_TRUE(run_until([&] { return one.actor.closed.size() == 1; }));
        for (std::uint64_t n = 1; n < 4; ++n)
            ASSERT_EQ(publish(*one.socket, Fid{1}, n, 40), Status::no_subscribers);
        all.unsubscribe(range(5, 5));
        ASSERT_EQ(publish(*one.socket, Fid{5}, 0, 40), Status::no_subscribers);
        all.subscribe(range(5, 5));
        announce("one", one, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.connected.size() == 2; }));
        ASSERT_TRUE(run_until([&] { return actor.subscribed["one"].size() >= 2; }));
        send(one, Fid{1});
        ASSERT_TRUE(run_until([&] { return actor.message_count == 2; }));
        const Subscriptions::PublisherStats stats = all.publisher_stats().front();
        EXPECT_THAT(actor.changes, IsEmpty());
        EXPECT_EQ(stats.source.address, to_string(one.address));
        EXPECT_EQ(all.sums().messages, 2U);
        if (remembered == 0) {
            EXPECT_THAT(actor.lost_while_disconnected, IsEmpty());
            EXPECT_EQ(all.publisher_stats().back().unknown_tails, 1U)
                << "it was forgotten: reported";
            continue;
        }
        EXPECT_EQ(actor.lost_while_disconnected, (std::map<Fid, std::uint64_t>{{Fid{1}, 3U}}));
        EXPECT_THAT(all.publisher_stats(), SizeIs(1));
        EXPECT_EQ(stats.unknown_tails, 0U);
        EXPECT_EQ(stats.connections, 2U);
        EXPECT_EQ(stats.fids.find(Fid{1})->messages, 2U);
        EXPECT_EQ(stats.fids.find(Fid{1})->lost, 3U);
    }
}

TEST_P(SeveralPublishers, AnotherProcessUnderADepartedNameIsReportedAsAnother) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    bus.tell().on_gone("one");
    Made& next = publisher();
    announce("one", next, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    ASSERT_THAT(actor.changes, SizeIs(1));
    EXPECT_FALSE(actor.changes[0].tail_known);
    ASSERT_THAT(all.publisher_stats(), SizeIs(1));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U);
}

TEST_P(SeveralPublishers, EveryAddressOfAFoundPublisherIsTriedWithAReasonForEach) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& one = publisher();
    Made& ended = publisher();
    Made& gone = publisher();
    elsewhere = {ended.address, gone.address};
    ended.socket.reset();
    gone.socket.reset();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_EQ(actor.closed, 0) << "one failed address is not a failure";
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed == 2; }));
    EXPECT_TRUE(actor.retrying);
    EXPECT_THAT(actor.reason,
                AllOf(HasSubstr(to_string(ended.address)), HasSubstr(to_string(gone.address)),
                      HasSubstr(to_string(one.address))));
    Made& back = publisher(gone.address);
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    send(back, Fid{2});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 2; }));
}

TEST_P(SeveralPublishers, AnAbsentPublisherTakesNoFidFromARunningOne) {
    Subscriptions::Options found = options({});
    found.bus = &bus;
    found.socket.session.connect_timeout = 1h; // it is refused, so there is no wait
    const netio::TimePoint begin = loop().now();
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& gone = publisher();
    gone.socket.reset();
    announce("a.false.word", gone, range(0, 9));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(0, 9)));
    EXPECT_LT(loop().now() - begin, 1h);
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
}

TEST_P(SeveralPublishers, OnlyAnAuthenticatedPublisherIsUsed) {
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-63:block connections=4");
    Subscriptions::Options found = options({});
    found.bus = &bus;
    found.socket.key =
        std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7), .protection = {}});
    Subscriptions all{transport(), found, actor};
    all.subscribe(range(0, 9));
    Made& impostor = publisher();
    announce("a.false.word", impostor, range(0, 63));
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    EXPECT_FALSE(actor.retrying);
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    Made& real = publisher();
    announce("real", real, range(0, 63));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    EXPECT_THAT(actor.subscribed["real"], ElementsAre(range(0, 9)));
    EXPECT_THAT(impostor.actor.subscribed, IsEmpty());
    EXPECT_EQ(publish(*impostor.socket, Fid{1}, 0, 40), Status::no_subscribers);
    send(real, Fid{2});
    ASSERT_TRUE(run_until([&] { return actor.message_count > 0; }));
    EXPECT_EQ(actor.messages, (std::map<Fid, std::uint64_t>{{Fid{2}, 1U}}));
}

// It was disconnected while it received a part of the stream, and the total is not reported to it.
TEST_P(SeveralPublishers, ATailLostByNarrowedRightsIsUnknownUntilTheyAreRestored) {
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-9:block");
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    Made& one = publisher();
    Subscriptions::Options at_one = options({one.address});
    at_one.socket.key =
        std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7), .protection = {}});
    Subscriptions all{transport(), at_one, actor};
    all.subscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 0U);

    files.permit(7, "services=pubsub fids=20-29:block");
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U) << "it is away";
    ASSERT_TRUE(run_until([&] { return actor.refused == 1; }));
    EXPECT_TRUE(all.publisher_stats().front().connected);
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U)
        << "it is connected, but reports nothing";
    for (std::uint64_t n = 0; n < 3; ++n)
        ASSERT_EQ(publish(*one.socket, Fid{1}, n, 40), Status::no_subscribers);

    const int ends = actor.closed;
    files.permit(7, "services=pubsub fids=0-9:block");
    ASSERT_TRUE(run_until([&] { return actor.closed > ends; }));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U);
    all.subscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_EQ(actor.lost_while_disconnected, (std::map<Fid, std::uint64_t>{{Fid{1}, 3U}}));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 0U);
    EXPECT_THAT(actor.changes, IsEmpty());
}

TEST_P(SeveralPublishers, ClosingAfterNarrowedRightsLeavesTheTailUnknown) {
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-9:block");
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    Made& one = publisher();
    Subscriptions::Options at_one = options({one.address});
    at_one.socket.key =
        std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7), .protection = {}});
    Subscriptions all{transport(), at_one, actor};
    all.subscribe(range(0, 4));
    all.subscribe(range(6, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    files.permit(7, "services=pubsub fids=0-4:block");
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 3 && actor.refused == 1; }));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U) << "of 6 to 9";
    all.close();
    ASSERT_TRUE(run_until([&] { return actor.ended == 1; }));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 1U);
}

// Its connection ends before the answer, and it reconnects with the other fids.
TEST_P(SeveralPublishers, UnsubscribedFidsHaveNoTail) {
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-9:block");
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    Made& one = publisher();
    Subscriptions::Options at_one = options({one.address});
    at_one.socket.key =
        std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7), .protection = {}});
    Subscriptions all{transport(), at_one, actor};
    all.subscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    files.permit(7, "services=pubsub fids=0-10:block");
    ASSERT_TRUE(run_until([&] { return one.actor.closed.size() == 1; }));
    all.unsubscribe(range(5, 9)); // there is no publisher to answer
    ASSERT_TRUE(run_until([&] { return actor.closed > 0 && all.connected_count() == 1; }));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_EQ(all.publisher_stats().front().unknown_tails, 0U);
}

TEST_P(SeveralPublishers, AllMayBeDestroyedInAHandler) {
    Made& one = publisher();
    Made& other = publisher();
    auto all =
        std::make_unique<Subscriptions>(transport(), options({one.address, other.address}), actor);
    all->subscribe(range(1, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    actor.at_message = [&](Subscriptions&) { all.reset(); };
    for (int i = 0; i < 5; ++i)
        send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return all == nullptr && !other.actor.closed.empty(); }));
    EXPECT_EQ(actor.message_count, 1U);
}

// And not only when the first publisher is found.
TEST_P(SeveralPublishers, AWrongConnectionOptionIsRefusedAlsoForFoundPublishers) {
    Subscriptions::Options wrong = options({});
    wrong.bus = &bus;
    wrong.socket.fid_limit = 0;
    EXPECT_THROW((Subscriptions{transport(), wrong, actor}), std::invalid_argument);
}

TEST_P(SeveralPublishers, NeitherAnAddressNorABusIsRefused) {
    EXPECT_THROW((Subscriptions{transport(), {}, actor}), std::invalid_argument);
    EXPECT_THAT(actor.connected, IsEmpty());
}

} // namespace
} // namespace netio::pubsub::test::subscriptions_test
