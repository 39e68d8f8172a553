// SPDX-License-Identifier: Apache-2.0

// A subscriber's first and later connection attempts, and ends during an attempt.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

namespace netio::pubsub::test::subscriber_connecting_test {
namespace {

using netio::CloseReason;
using netio::Status;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

class ConnectingSubscribers : public PubSubScenario {
  protected:
    void turn(int times) {
        for (int i = 0; i < times; ++i)
            loop().run_once();
    }
    // Starts a publisher at the address of the former one, which is destroyed.
    std::unique_ptr<BufferedPublishSocket> another() {
        return std::make_unique<BufferedPublishSocket>(
            transport(),
            BufferedPublishSocket::Options{
                .publisher = {.listen = {address}, .allow_remote_anonymous = true}},
            publisher_actor);
    }
    // Makes the address one without a listener.
    void free_address() { static_cast<void>(unbuffered({})); }
};

TEST_P(ConnectingSubscribers, BetweenTwoAttemptsAnAbortIsFinalToo) {
    free_address();
    auto& subscriber = subscribe({range(1, 1)}, {.retry_interval = 1h, .retry_limit = 1h});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    ASSERT_TRUE(subscriber.actor.last_retrying);
    subscriber.socket->abort();
    subscriber.socket->abort();
    subscriber.socket->subscribe(range(2, 2)); // which is too late
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.closed[1].reason, CloseReason::local);
    EXPECT_FALSE(subscriber.actor.last_retrying);
    turn(20);
    EXPECT_THAT(subscriber.actor.closed, SizeIs(2));
}

// Its publisher closed the connection in order; the next publisher need not be running yet.
TEST_P(ConnectingSubscribers, WaitAgainForAPublisherAfterAnIdleDisconnect) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)}, {.retry_interval = 10ms});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    EXPECT_FALSE(subscriber.actor.last_retrying) << "it has no subscription";
    publisher.reset();
    subscriber.socket->subscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 3; }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    publisher = another();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_EQ(subscriber.socket->counters().connections, 2U);
}

// Ten requests, which are not all in memory at once, on each of several connections.
TEST_P(ConnectingSubscribers, RequestAllFidsInEachConnectionAlsoAfterFailedAttempts) {
    free_address();
    std::vector<FidRange> fids;
    for (std::uint64_t i = 0; i < 2500; ++i)
        fids.push_back(range(2 * i, 2 * i));
    auto& subscriber = subscribe(fids, {.reconnect = true, .retry_interval = 10ms});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 3; }));
    for (std::size_t connection = 1; connection <= 3; ++connection) {
        SCOPED_TRACE(connection);
        publisher_actor = {};
        auto publisher = another();
        ASSERT_TRUE(run_until(
            [&] { return subscriber.actor.subscribed.size() == connection * fids.size(); }));
        std::vector<FidRange> asked = publisher_actor.subscribed;
        std::ranges::sort(asked, {}, &FidRange::first);
        EXPECT_EQ(asked, fids);
        EXPECT_THAT(publisher_actor.closed, IsEmpty());
    }
    EXPECT_THAT(subscriber.actor.refused, IsEmpty());
}

// Although the position of each of its subscriptions is reported.
TEST_P(ConnectingSubscribers, MayUnsubscribeAPartAfterAReconnection) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 9)}, {.reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->unsubscribe(range(3, 5));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.unsubscribed.size() == 1; }));
    EXPECT_THAT(subscriber.actor.closed, IsEmpty());
    EXPECT_THAT(subscriber.socket->wanted(), testing::ElementsAre(range(1, 2), range(6, 9)));
    EXPECT_EQ(publish(*publisher, Fid{4}, 0, 40), Status::no_subscribers);
}

INSTANTIATE_TEST_SUITE_P(Beds, ConnectingSubscribers, all_beds(), bed_name);

// --- in virtual time ------------------------------------------------------------------------

using ConnectingSubscribersInVirtualTime = ConnectingSubscribers;

TEST_P(ConnectingSubscribersInVirtualTime, RetryQuicklyAgainAfterAWorkingConnection) {
    const auto attempts_within = [&](const SubscriberActor& actor, netio::Duration time) {
        const std::size_t before = actor.closed.size();
        bed.let_pass(time);
        return actor.closed.size() - before;
    };
    auto publisher = buffered({});
    auto& subscriber =
        subscribe({range(1, 1)}, {.reconnect = true, .retry_interval = 10ms, .retry_limit = 20s});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    publisher.reset();
    EXPECT_GE(attempts_within(subscriber.actor, 1s), 4U);
    bed.let_pass(50s);
    bed.let_pass(50s);
    EXPECT_LE(attempts_within(subscriber.actor, 20s), 2U) << "attempts have become rare";
    publisher = another();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    publisher.reset();
    EXPECT_GE(attempts_within(subscriber.actor, 1s), 4U);
}

TEST_P(ConnectingSubscribersInVirtualTime, MayEndAtEachMomentAndTryNoOtherAddressThen) {
    auto publisher = buffered({});
    const netio::Address right = address;
    free_address();
    bed.sim()->delay_resolution(100us);
    for (const bool at_once : {false, true}) {
        for (int moment = 0; moment < 40; ++moment) {
            SCOPED_TRACE(testing::Message() << "moment " << moment << (at_once ? ", at once" : ""));
            subscribers.clear();
            auto& subscriber =
                subscribe({range(1, 1)}, {.fallback_addresses = {right}, .reconnect = true});
            bed.let_pass(moment * 10us);
            const std::vector<netio::Closed>& closed = subscriber.actor.closed;
            const std::size_t before = closed.size();
            at_once ? subscriber.socket->abort() : subscriber.socket->close();
            EXPECT_EQ(closed.size(), before) << "no callback within a call";
            const int connected = subscriber.actor.connected;
            ASSERT_TRUE(run_until([&] { return closed.size() > before; }));
            bed.let_pass(1ms);
            EXPECT_EQ(closed.size(), before + 1);
            EXPECT_FALSE(subscriber.actor.last_retrying);
            EXPECT_EQ(subscriber.actor.connected, connected);
            ASSERT_TRUE(run_until([&] { return publisher->counters().subscribers == 0; }));
        }
    }
    EXPECT_GT(publisher_actor.connected, 0) << "the last moments must come after the attempt";
}

// A socket with its own time-out ends an attempt at the same time as the session does.
TEST_P(ConnectingSubscribersInVirtualTime, MayEndAfterAnUnreportedFailure) {
    const auto publisher = buffered({});
    bed.sim()->network().ignore_connects(true);
    for (const bool at_once : {false, true}) {
        const std::uint64_t before = bed.sim()->next_connection();
        auto& subscriber = subscribe({range(1, 1)}, {.session = {.connect_timeout = 50ms}});
        ASSERT_TRUE(run_until([&] { return bed.sim()->next_connection() > before; }));
        netio::Timer end{
            loop(), [&] { at_once ? subscriber.socket->abort() : subscriber.socket->close(); }};
        end.start(50ms); // after the session's
        ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
        EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::local);
        EXPECT_FALSE(subscriber.actor.last_retrying);
    }
}

// Even the route to it need not be known.
TEST_P(ConnectingSubscribersInVirtualTime, LookUpARouteAgainAfterAnIdleDisconnect) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 1)}, {.retry_interval = 10ms});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    bed.sim()->refuse_searching(true);
    subscriber.socket->subscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 2; }));
    EXPECT_TRUE(subscriber.actor.last_retrying);
    bed.sim()->refuse_searching(false);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, ConnectingSubscribersInVirtualTime, netio::test::simulated_beds(),
                         bed_name);

} // namespace
} // namespace netio::pubsub::test::subscriber_connecting_test
