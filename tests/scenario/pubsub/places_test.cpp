// SPDX-License-Identifier: Apache-2.0

// More publishers in a registry than allowed connections, and others that listen at their
// addresses.

#include "tests/scenario/pubsub/several_publishers.hpp"

namespace netio::pubsub::test::places_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FoundPublishers : public SeveralPublishers {
  protected:
    Subscriptions::Options found(std::size_t limit) {
        Subscriptions::Options options = SeveralPublishers::options({});
        options.bus = &bus;
        options.publisher_limit = limit;
        return options;
    }
    // Kills a publisher after a subscription; another one, which is not in the registry, gets its
    // port and its requests.
    Made& replace(Made& killed) {
        const std::size_t before = actor.changes.size();
        killed.socket.reset();
        Made& other = publisher(killed.address);
        EXPECT_TRUE(run_until([&] { return actor.changes.size() > before; }));
        return other;
    }
    void receive(Made& from, Fid fid) {
        const std::size_t before = actor.message_count;
        send(from, fid);
        ASSERT_TRUE(run_until([&] { return actor.message_count > before; }));
    }
};

INSTANTIATE_TEST_SUITE_P(Beds, FoundPublishers, all_beds(), bed_name);

// The connect time-out is so short that a slow machine may miss it.
class HastyFoundPublishers : public FoundPublishers {};

INSTANTIATE_TEST_SUITE_P(Beds, HastyFoundPublishers, netio::test::simulated_beds(), bed_name);

TEST_P(FoundPublishers, WithoutSubscribedFidsUseNoSlot) {
    Subscriptions all{transport(), found(2), actor};
    all.subscribe(range(20, 29));
    announce("one", publisher(), range(0, 9));
    announce("two", publisher(), range(10, 19));
    Made& three = publisher();
    announce("three", three, range(20, 29));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    receive(three, Fid{20});
    all.subscribe(range(0, 0));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(0, 0)));
    EXPECT_THAT(actor.troubles, IsEmpty());
}

TEST_P(FoundPublishers, ThatWereSkippedAreAskedWhenAnotherLeaves) {
    Subscriptions all{transport(), found(1), actor};
    all.subscribe(range(0, 29));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    announce("two", publisher(), range(10, 19));
    announce("three", publisher(), range(20, 29));
    ASSERT_TRUE(run_until([&] { return !actor.troubles.empty(); }));
    EXPECT_THAT(actor.troubles, ElementsAre(HasSubstr("publisher_limit; two and")));
    receive(one, Fid{1});
    EXPECT_THAT(actor.connected, ElementsAre("one"));
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return actor.closed > 0; }));
    bus.tell().on_gone("one");
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["two"], ElementsAre(range(10, 19)));
    // The connection of a publisher without subscriptions is closed.
    all.unsubscribe(range(10, 19));
    all.unsubscribe(range(25, 29));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 3; }));
    EXPECT_THAT(actor.subscribed["three"], ElementsAre(range(20, 24)));
    EXPECT_THAT(actor.troubles, SizeIs(1));
}

TEST_P(HastyFoundPublishers, WithASlotAreAskedForFidsClaimedByOneWithout) {
    Subscriptions::Options few = found(1);
    few.socket.session.connect_timeout = 10ms; // this long it has the fids
    Subscriptions all{transport(), few, actor};
    all.subscribe(range(0, 19));
    Made& one = publisher();
    announce("one", one, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    announce("two", publisher(), range(10, 19));
    announce("one", one, range(0, 19));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 2; }));
    EXPECT_THAT(actor.subscribed["one"], ElementsAre(range(0, 9), range(10, 19)));
}

TEST_P(HastyFoundPublishers, ReplacedByAnotherServerLoseTheirFidsWithTheirLease) {
    for (const bool known_before : {true, false}) {
        SCOPED_TRACE(known_before);
        actor = {};
        Subscriptions::Options options = found(16);
        options.socket.session.connect_timeout = 10ms;
        Subscriptions all{transport(), options, actor};
        all.subscribe(range(0, 9));
        Made& killed = publisher();
        announce("killed", killed, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        replace(killed);
        Made& heir = publisher();
        if (known_before) announce("heir", heir, range(0, 9));
        bus.tell().on_gone("killed");
        if (!known_before) announce("heir", heir, range(0, 9));
        ASSERT_TRUE(run_until([&] { return !actor.subscribed["heir"].empty(); }));
        EXPECT_THAT(actor.subscribed["heir"], ElementsAre(range(0, 9)));
        receive(heir, Fid{1});
    }
}

TEST_P(FoundPublishers, WithKeysRunningOnesGetTheFidsOfAReplacedOne) {
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-63:block connections=8");
    keys = std::make_shared<ServerKeys>(loop(), ServerKeys::Options{.file = files.site()});
    for (const bool connected_before : {true, false}) {
        SCOPED_TRACE(connected_before);
        actor = {};
        Subscriptions::Options options = found(16);
        options.socket.key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = {}});
        Subscriptions all{transport(), options, actor};
        all.subscribe(range(0, 19));
        Made& killed = publisher();
        announce("killed", killed, range(0, 9));
        ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
        replace(killed);
        Made& heir = publisher();
        announce("heir", heir, connected_before ? range(0, 19) : range(0, 9));
        if (connected_before) {
            ASSERT_TRUE(run_until([&] { return !actor.subscribed["heir"].empty(); }));
        }
        bus.tell().on_gone("killed");
        const auto has_all = [&] {
            const auto& asked = actor.subscribed["heir"];
            return std::ranges::find(asked, range(0, 9)) != asked.end();
        };
        ASSERT_TRUE(run_until(has_all));
        receive(heir, Fid{1});
    }
}

TEST_P(FoundPublishers, AReplacementAtTheirAddressIsUsedUntilAnotherClaimsTheFids) {
    Subscriptions all{transport(), found(16), actor};
    all.subscribe(range(0, 9));
    Made& killed = publisher();
    announce("killed", killed, range(0, 9));
    ASSERT_TRUE(run_until([&] { return actor.subscriptions == 1; }));
    Made& other = replace(killed);
    bus.tell().on_gone("killed");
    receive(other, Fid{1});
    receive(other, Fid{2});
    EXPECT_EQ(all.connected_count(), 1U);
}

} // namespace
} // namespace netio::pubsub::test::places_test
