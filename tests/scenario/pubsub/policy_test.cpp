// SPDX-License-Identifier: Apache-2.0

// Policies that subscribers request, each for some of their fids.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::policy_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using testing::ElementsAre;
using testing::IsEmpty;

using PoliciesAskedFor = PubSubScenario;

TEST_P(PoliciesAskedFor, ADropSubscriberNeverBlocksALosslessStream) {
    auto publisher =
        buffered({.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 8 * 1024});
    auto& steady = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return steady.actor.subscribed.size() == 1; }));
    auto guest = stuck(range(1, 1), SlowPolicy::drop);
    constexpr std::uint64_t count = 2000;
    std::uint64_t next = 0;
    publisher_actor.at_room = [&] {
        while (next < count && publish(*publisher, Fid{1}, next, 500) == Status::ok)
            ++next;
    };
    publisher_actor.at_room();
    ASSERT_TRUE(run_until([&] { return next == count; }));
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return steady.actor.messages == count; }));
    steady.actor.expect_contiguous(Fid{1}, 0, count);
    EXPECT_THAT(steady.actor.gaps, IsEmpty());
    EXPECT_GT(publisher->counters().dropped, count / 2);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
}

TEST_P(PoliciesAskedFor, ApplyToTheirFidsOnlyAndTheLatestCounts) {
    auto publisher = unbuffered({.outstanding_limit = 100, .queue_limit_messages = 2});
    auto& subscriber = subscribe({range(1, 4)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->subscribe(range(2, 3), SlowPolicy::drop);
    subscriber.socket->subscribe(range(3, 3));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 3; }));
    netio::RegisteredBuffer memory{1000};
    std::uint64_t key = 0;
    const auto take = [&](std::uint64_t fid) {
        return publisher->publish(Fid{fid}, memory.slice(), Cookie{key++});
    };
    while (take(1) == Status::ok) // until the session's credits and its limit are used up
        ASSERT_LT(key, 50U);
    EXPECT_EQ(take(3), Status::again);
    EXPECT_EQ(take(4), Status::again);
    EXPECT_EQ(take(2), Status::ok) << "this one may be lost";
    EXPECT_EQ(publisher->counters().dropped, 1U);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(subscriber.actor.gaps[Fid{2}], 1U);
    EXPECT_EQ(subscriber.actor.gaps.size(), 1U);
    EXPECT_EQ(subscriber.actor.lost, 1U) << "the one that was reported";
}

TEST_P(PoliciesAskedFor, ChangingToDropReleasesTheBlockedPublisher) {
    auto publisher = unbuffered({.outstanding_limit = 100, .queue_limit_messages = 2});
    auto slow = stuck(range(1, 1));
    netio::RegisteredBuffer memory{50000}; // too large for a batch
    std::uint64_t key = 0;
    const auto fill = [&] {
        while (key < 50 && publisher->publish(Fid{1}, memory.slice(), Cookie{key}) == Status::ok)
            ++key;
    };
    publisher_actor.at_room = fill;
    fill();
    // All posted messages have left and are completed; two messages wait for the slow subscriber,
    // and all others for these two.
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() + 2 == key; }));
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{key}), Status::again);
    // There is no credit left for the answer either, because its completion would be reported too.
    const std::uint32_t last = 6;
    for (std::uint32_t nth = 2; nth < last; ++nth) {
        request(*slow, nth, range(1, 1), SlowPolicy::block);
        ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == nth; }));
    }
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{key}), Status::again);
    request(*slow, last, range(1, 1), SlowPolicy::drop);
    EXPECT_TRUE(run_until([&] { return key == 50; })) << key << " accepted";
}

TEST_P(PoliciesAskedFor, AStricterPolicyThanThePublishersIsRefused) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop}});
    auto& lossless = subscribe({range(1, 1), range(5, 5)}, {}, SlowPolicy::block);
    auto& impatient = subscribe({range(2, 2)}, {}, SlowPolicy::disconnect);
    auto& modest = subscribe({range(3, 3)}, {}, SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] {
        return lossless.actor.policy_refused.size() == 2 &&
               impatient.actor.policy_refused.size() == 1 && modest.actor.subscribed.size() == 1;
    }));
    EXPECT_EQ(publisher->counters().requests_refused, 2U);
    ASSERT_EQ(bed.seen().refused.size(), 2U);
    EXPECT_THAT(bed.seen().refused[0].why, testing::HasSubstr("slow_policy"));
    EXPECT_NE(bed.seen().refused[0].peer, bed.seen().refused[1].peer);
    netio::RegisteredBuffer memory{64};
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{1}), Status::no_subscribers);
    EXPECT_EQ(publisher->publish(Fid{2}, memory.slice(), Cookie{2}), Status::no_subscribers);
    EXPECT_EQ(publisher->publish(Fid{3}, memory.slice(), Cookie{3}), Status::ok);
}

TEST_P(PoliciesAskedFor, OnlyTheRequestingSubscriberIsDisconnected) {
    auto publisher = unbuffered({.publisher = {.disconnect_after = std::chrono::milliseconds{50}},
                                 .queue_limit_messages = 2});
    auto& honest = subscribe({range(1, 2)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto impatient = stuck(range(1, 1), SlowPolicy::disconnect);
    auto patient = stuck(range(2, 2));
    netio::RegisteredBuffer memory{50000}; // too large for a batch: each takes a receive buffer
    std::uint64_t of_two = 0;
    while (publisher->publish(Fid{2}, memory.slice(), Cookie{of_two}) == Status::ok)
        ASSERT_LT(++of_two, 100U);
    std::uint64_t of_one = 0;
    ASSERT_TRUE(run_until([&] {
        while (of_one < 200 &&
               publisher->publish(Fid{1}, memory.slice(), Cookie{1000 + of_one}) == Status::ok)
            ++of_one;
        return of_one == 200;
    }));
    ASSERT_EQ(publisher_actor.closed.size(), 1U);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::too_slow);
    EXPECT_EQ(publisher->publish(Fid{2}, memory.slice(), Cookie{9999}), Status::again)
        << "the publisher still waits for the other one";
}

TEST_P(PoliciesAskedFor, AreRequestedAgainAfterALostConnection) {
    auto publisher = unbuffered({.queue_limit_messages = 1});
    auto& subscriber =
        subscribe({range(1, 9)}, {.session = {.receive_count = 4}, .reconnect = true});
    subscriber.socket->subscribe(range(3, 5), SlowPolicy::drop);
    subscriber.socket->subscribe(range(20, 20), SlowPolicy::drop);
    subscriber.socket->unsubscribe(range(5, 20));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    publisher.reset();
    subscriber.actor.subscribed.clear();
    PublishSocket::Options options{
        .publisher = {.listen = {address}, .allow_remote_anonymous = true},
        .queue_limit_messages = 1};
    PublishSocket again{transport(), options, publisher_actor};
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_THAT(subscriber.actor.subscribed, ElementsAre(range(1, 2), range(3, 4)));
    netio::RegisteredBuffer memory{1000};
    std::uint64_t key = 0;
    while (again.publish(Fid{1}, memory.slice(), Cookie{key++}) == Status::ok)
        ASSERT_LT(key, 50U);
    EXPECT_EQ(again.publish(Fid{2}, memory.slice(), Cookie{key++}), Status::again);
    EXPECT_EQ(again.publish(Fid{4}, memory.slice(), Cookie{key++}), Status::ok);
    EXPECT_EQ(again.counters().dropped, 1U);
}

INSTANTIATE_TEST_SUITE_P(Beds, PoliciesAskedFor, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::policy_test
