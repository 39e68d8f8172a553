// SPDX-License-Identifier: Apache-2.0

// The queue of a netio::Publisher on a loop in virtual time: what it accepts, and that all of it is
// published, however little memory there is.

#include "tests/scenario/pubsub/publisher_scenario.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::publisher_queue_test {
namespace {

using netio::Status;

class QueuingPublisher : public FrontPublisherScenario {
  protected:
    // A subscriber may leave while messages are in flight; anything else is wrong.
    ~QueuingPublisher() override {
        EXPECT_THAT(lines.all(), testing::Each(testing::HasSubstr("is gone")));
    }
};

INSTANTIATE_TEST_SUITE_P(Beds, QueuingPublisher, netio::test::simulated_beds(), bed_name);

TEST_P(QueuingPublisher, TakesAMessageOfExactlyTheLimit) {
    options.socket.publisher.largest_message_bytes = 3000;
    serve();
    const SubscriberActor& subscriber = subscribe_to_one();
    EXPECT_EQ(publish(0, 3001), Status::too_large);
    EXPECT_EQ(publish(0, 3000), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.messages == 1; }));
    EXPECT_EQ(subscriber.by_fid.at(Fid{1}).front().size, 3000U);
    EXPECT_EQ(published(), 1U);
}

TEST_P(QueuingPublisher, ReportsWhetherTheFidHasASubscriber) {
    serve();
    EXPECT_EQ(publish(0, 40), Status::no_subscribers);
    EXPECT_FALSE(publisher->wait_for_subscribers(1, std::chrono::milliseconds{0}));
    Subscription& one = subscribe_to(range(1, 5));
    Subscription& other = subscribe_to(range(3, 9));
    EXPECT_TRUE(publisher->wait_for_subscribers(2, std::chrono::milliseconds{0}));
    EXPECT_FALSE(publisher->wait_for_subscribers(3, std::chrono::milliseconds{0}));
    EXPECT_EQ(publish(1, 40), Status::ok);
    EXPECT_EQ(publish(Fid{10}, 0, 40), Status::no_subscribers);
    one.socket->unsubscribe(range(1, 4));
    ASSERT_TRUE(run_until([&] { return one.actor.unsubscribed.size() == 1; }));
    EXPECT_EQ(publish(2, 40), Status::no_subscribers);
    EXPECT_EQ(publish(Fid{3}, 0, 40), Status::ok) << "only the other subscriber wants it";
    EXPECT_EQ(publish(Fid{5}, 0, 40), Status::ok) << "both want it";
    other.socket->close();
    ASSERT_TRUE(run_until([&] { return other.actor.closed.size() == 1; }));
    ASSERT_TRUE(run_until(
        [&] { return !publisher->wait_for_subscribers(2, std::chrono::milliseconds{0}); }));
    EXPECT_EQ(publish(Fid{3}, 1, 40), Status::no_subscribers);
    EXPECT_EQ(publish(Fid{5}, 1, 40), Status::ok);
    ASSERT_TRUE(run_until([&] { return published() == 8; })) << "all of them count";
}

TEST_P(QueuingPublisher, PublishesInOrderAsItsSubscribersMakeProgress) {
    constexpr std::uint64_t count = 200;
    serve();
    const SubscriberActor& subscriber = subscribe_to_one();
    subscribers.front()->socket->pause();
    for (std::uint64_t number = 0; number < count; ++number)
        ASSERT_EQ(publish(number, 900), Status::ok);
    std::uint64_t held_up_at = 0;
    for (int turn = 0; turn < 1000; ++turn) {
        loop().run_once(loop().now() + std::chrono::milliseconds{1});
        held_up_at = published();
    }
    EXPECT_LT(held_up_at, count) << "the pages are full";
    subscribers.front()->socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.messages == count; }));
    subscriber.expect_contiguous(Fid{1}, 0, count);
    EXPECT_EQ(published(), count);
}

// However fast the fid without progress is published.
TEST_P(QueuingPublisher, AFidWithAStoppedSubscriberBlocksNoOther) {
    constexpr std::uint64_t count = 200;
    serve();
    Subscription& stopped = subscribe_to(range(1, 1));
    stopped.socket->pause();
    Subscription& other = subscribe_to(range(2, 2));
    std::uint64_t taken = 0;
    for (std::uint64_t number = 0; number < count; ++number) {
        while (publish(Fid{1}, taken, 900) == Status::ok)
            ++taken;
        ASSERT_TRUE(run_until([&] { return publish(Fid{2}, number, 900) == Status::ok; }));
        ASSERT_TRUE(run_until([&] { return other.actor.messages == number + 1; }));
    }
    EXPECT_LT(published(), taken + count);
    stopped.socket->resume();
    ASSERT_TRUE(run_until([&] { return stopped.actor.messages == taken; }));
    stopped.actor.expect_contiguous(Fid{1}, 0, taken);
    other.actor.expect_contiguous(Fid{2}, 0, count);
}

TEST_P(QueuingPublisher, EachBlockedFidContinuesWithItsSubscribersProgress) {
    constexpr std::uint64_t count = 100;
    serve();
    std::vector<Subscription*> all;
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        all.push_back(&subscribe_to(range(fid, fid)));
        all.back()->socket->pause();
    }
    for (std::uint64_t number = 0; number < count; ++number)
        for (std::uint64_t fid = 1; fid <= 3; ++fid)
            ASSERT_EQ(publish(Fid{fid}, number, 900), Status::ok);
    bed.let_pass(std::chrono::milliseconds{10});
    EXPECT_LT(published(), 3 * count);
    for (std::uint64_t fid = 3; fid >= 1; --fid) { // the fid that is blocked last continues first
        Subscription& each = *all[fid - 1];
        each.socket->resume();
        ASSERT_TRUE(run_until([&] { return each.actor.messages == count; }));
        each.actor.expect_contiguous(Fid{fid}, 0, count);
    }
    EXPECT_EQ(published(), 3 * count);
}

TEST_P(QueuingPublisher, PublishesNoMoreInATurnThanItsTimeAllowsAndAllBeforeItsEnd) {
    constexpr std::uint64_t count = 50;
    serve();
    const SubscriberActor& subscriber = subscribe_to_one();
    bed.sim()->set_costs({.post = 2 * netio::EventLoop::Options{}.turn_limit});
    for (std::uint64_t number = 0; number < count; ++number)
        ASSERT_EQ(publish(number, 900), Status::ok);
    loop().run_once();
    EXPECT_LT(published(), 10U) << "one page each";
    publisher->close();
    EXPECT_EQ(publish(count, 900), Status::closed);
    EXPECT_FALSE(publisher->is_closed());
    ASSERT_TRUE(run_until([&] { return publisher->is_closed(); }));
    subscriber.expect_contiguous(Fid{1}, 0, count);
    EXPECT_EQ(published(), count);
}

TEST_P(QueuingPublisher, CountsUnsubscribedMessagesButNoRefusedOnes) {
    options.fids = FidSet{{1, 9}};
    serve(4096);
    std::uint64_t taken = 0;
    while (publish(taken, 900) == Status::no_subscribers)
        ++taken;
    EXPECT_LT(taken, 6U);
    EXPECT_EQ(publish(taken, 900), Status::again);
    EXPECT_EQ(publisher->try_publish(10, ""), Status::not_owned);
    ASSERT_TRUE(run_until([&] { return published() == taken; }));
    EXPECT_EQ(publish(taken, 900), Status::no_subscribers) << "there is space again";
    ASSERT_TRUE(run_until([&] { return published() == taken + 1; }));
}

} // namespace
} // namespace netio::pubsub::test::publisher_queue_test
