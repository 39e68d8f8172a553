// SPDX-License-Identifier: Apache-2.0

// One publisher with several names or addresses: it gets one connection, and its messages arrive
// once.

#include "tests/scenario/pubsub/several_publishers.hpp"

namespace netio::pubsub::test::one_publisher_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class OnePublisher : public SeveralPublishers {
  protected:
    void subscribe(std::vector<netio::Address> given) {
        Subscriptions::Options found = options(std::move(given));
        found.bus = &bus;
        all = std::make_unique<Subscriptions>(transport(), found, actor);
        all->subscribe(range(0, 9));
    }

    std::unique_ptr<Subscriptions> all;
};

INSTANTIATE_TEST_SUITE_P(Beds, OnePublisher, netio::test::simulated_beds(), bed_name);

TEST_P(OnePublisher, GivenByItsAddressAndFoundByItIsOne) {
    Made& one = publisher();
    subscribe({one.address});
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    send(one, Fid{1});
    bed.let_pass(100ms);
    EXPECT_EQ(actor.message_count, 1U);
    EXPECT_THAT(actor.connected, ElementsAre(to_string(one.address)));
    EXPECT_THAT(actor.contests, IsEmpty());
    bus.tell().on_gone("one");
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 2; }));
}

// The addresses do not show that both are the same.
TEST_P(OnePublisher, GivenAndFoundAtDifferentAddressesIsOneAfterBothAnswer) {
    for (const bool is_late : {false, true}) {
        SCOPED_TRACE(is_late);
        actor = {};
        Made& one = publisher();
        const netio::Address given{.host = "one.example", .port = one.address.port};
        bed.sim()->name(given.host, is_late ? std::vector<std::string>{}
                                            : std::vector<std::string>{one.address.host});
        subscribe({given});
        if (is_late) announce("one", one, range(0, 4));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        send(one, Fid{1});
        ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
        if (is_late) bed.sim()->name(given.host, {one.address.host});
        if (!is_late) announce("one", one, range(0, 4));
        ASSERT_TRUE(run_until([&] { return actor.connected.size() == 2; }));
        bed.let_pass(100ms);
        send(one, Fid{1});
        send(one, Fid{9});
        bed.let_pass(100ms);
        EXPECT_EQ(actor.message_count, 3U);
        EXPECT_EQ(all->connected_count(), 1U);
        std::uint64_t unknown_tails = 0;
        for (const Subscriptions::PublisherStats& stats : all->publisher_stats())
            unknown_tails += stats.unknown_tails;
        EXPECT_EQ(unknown_tails, is_late ? 1U : 0U) << "without a loss, or with a report";
        all.reset();
    }
}

// Its claims after the first slice were not yet processed when it proved to be the same publisher.
TEST_P(OnePublisher, UsedByItsAddressClaimsNothingUnderItsNameAnyMore) {
    Made& one = publisher();
    Made& other = publisher();
    const netio::Address given{.host = "one.example", .port = one.address.port};
    bed.sim()->name(given.host, {one.address.host});
    subscribe({given});
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    announce("other", other, range(0, 4));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    announce("one", one, range(5, 9));
    ASSERT_TRUE(run_until([&] { return actor.connected.size() == 3; }));
    ASSERT_THAT(actor.subscribed["one"], IsEmpty());
    Announcement more;
    more.name = "one";
    more.instance = 1;
    more.addresses = {"tcp:" + to_string(one.address)};
    for (std::uint64_t fid = 0; fid < 100'000; fid += 2)
        more.fids.push_back({.fids = range(fid, fid), .meaning = {}});
    bus.tell().on_announced(more);
    // At the same time it answers the request that was made under its name.
    Timer pass{loop(), [&] {
                   bed.world()->spend(1ms);
                   pass.start(netio::Duration::zero());
               }};
    pass.start(netio::Duration::zero());
    ASSERT_TRUE(run_until([&] { return all->connected_count() == 2; }));
    pass.cancel();
    bed.let_pass(100ms);
    EXPECT_THAT(actor.contests, IsEmpty());
}

// By default a name contains the process number. The old name stays in the registry until its lease
// expires.
TEST_P(OnePublisher, RestartedUnderAnotherNameAtItsAddressKeepsItsCounters) {
    for (const bool is_announced_first : {true, false}) {
        SCOPED_TRACE(is_announced_first);
        actor = {};
        subscribe({});
        Made& one = publisher();
        announce("host-1-0", one, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        send(one, Fid{1});
        ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
        one.socket.reset();
        ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
        Made next;
        next.address = one.address;
        if (is_announced_first) announce("host-2-0", next, range(0, 9));
        Made& real = publisher(one.address);
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
        if (!is_announced_first) announce("host-2-0", next, range(0, 9));
        bed.let_pass(1s);
        bus.tell().on_gone("host-1-0");
        for (int i = 0; i < 100; ++i) {
            send(real, Fid{1});
            bed.let_pass(200ms); // an attempt takes 5 s
        }
        EXPECT_EQ(actor.message_count, 101U);
        EXPECT_THAT(actor.changes, SizeIs(1));
        EXPECT_THAT(actor.lost_while_disconnected, IsEmpty());
        ASSERT_THAT(all->publisher_stats(), SizeIs(1));
        EXPECT_EQ(all->publisher_stats().front().source.name, "host-2-0");
        EXPECT_EQ(all->publisher_stats().front().unknown_tails, 1U) << "of the killed publisher";
        // From here on it is known by its new name.
        bus.tell().on_gone("host-2-0");
        real.socket.reset();
        ASSERT_TRUE(run_until([&] { return all->connected_count() == 0; }));
        Made& other = publisher();
        announce("host-3-0", other, range(0, 9));
        ASSERT_TRUE(run_until([&] { return !actor.subscribed["host-3-0"].empty(); }));
        all.reset();
    }
}

// Two running publishers: an announcement with another publisher's address takes nothing from that
// publisher.
TEST_P(OnePublisher, IsNotRenamedByAForeignAnnouncement) {
    subscribe({});
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    announce("a.false.word", one, range(20, 29));
    bed.let_pass(100ms);
    send(one, Fid{1});
    ASSERT_TRUE(run_until([&] { return actor.message_count == 1; }));
    EXPECT_EQ(all->publisher_stats().front().source.name, "one");
}

} // namespace
} // namespace netio::pubsub::test::one_publisher_test
