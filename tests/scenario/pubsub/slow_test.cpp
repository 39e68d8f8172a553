// SPDX-License-Identifier: Apache-2.0

// Slow subscribers under each policy.

#include "tests/scenario/pubsub/exact_account.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::test::slow_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;

using SlowSubscribers = PubSubScenario;

TEST_P(SlowSubscribers, BlockingLosesNothingAndBlocksOnlyTheirFids) {
    auto publisher =
        buffered({.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 12 * 1024});
    auto& honest = subscribe({range(1, 2)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto slow = stuck(range(1, 1));
    std::uint64_t of_one = 0;
    const auto blocked = [&] {
        while (publish(*publisher, Fid{1}, of_one, 500) == Status::ok)
            ++of_one;
        return honest.actor.by_fid[Fid{1}].size() + 2 >= of_one && of_one > 20;
    };
    ASSERT_TRUE(run_until(blocked));
    // It stays blocked, and the other fid continues.
    for (std::uint64_t of_two = 0; of_two < 500; ++of_two) {
        ASSERT_TRUE(
            run_until([&] { return publish(*publisher, Fid{2}, of_two, 500) == Status::ok; }));
    }
    while (publish(*publisher, Fid{1}, of_one, 500) == Status::ok)
        ASSERT_LT(++of_one, 60U) << "it exceeds its limit of pages";
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return honest.actor.by_fid[Fid{2}].size() == 500; }));
    slow.reset();
    ASSERT_TRUE(run_until([&] { return publish(*publisher, Fid{1}, of_one, 500) == Status::ok; }));
    ++of_one;
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    honest.actor.expect_contiguous(Fid{1}, 0, of_one);
    honest.actor.expect_contiguous(Fid{2}, 0, 500);
}

// Each message takes a page of 960 bytes; the publisher queues at most this many bytes for one
// subscriber that receives nothing.
void expect_held(BufferedPublishSocket& publisher, std::uint64_t share) {
    std::uint64_t held = 0;
    while (publisher.publish(Fid{1}, make_message(Fid{1}, held, 900)) == Status::ok &&
           publisher.counters().dropped == 0) {
        publisher.flush();
        held += 960;
    }
    EXPECT_GE(held + 960, share);
    EXPECT_LE(held, share + 16U * 960U) << "and its receive buffers";
}

TEST_P(SlowSubscribers, ByDefaultHoldOneMebibyteWithPolicyBlock) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 16384});
    auto slow = stuck(range(1, 1));
    expect_held(*publisher, 1024 * 1024);
}

TEST_P(SlowSubscribers, ByDefaultHoldFourMebibytesWithPolicyDrop) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 16384});
    auto slow = stuck(range(1, 1));
    expect_held(*publisher, 4 * 1024 * 1024);
}

TEST_P(SlowSubscribers, ByDefaultHoldHalfOfTheMemoryAtMost) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64});
    auto slow = stuck(range(1, 1));
    expect_held(*publisher, 32 * 1024);
}

TEST_P(SlowSubscribers, BlockingBoundsWhatAnUnbufferedPublisherHolds) {
    auto publisher = unbuffered({.outstanding_limit = 100, .queue_limit_messages = 5});
    auto slow = stuck(range(1, 1));
    netio::RegisteredBuffer memory{1000};
    std::uint64_t accepted = 0;
    while (publisher->publish(Fid{1}, memory.slice(), Cookie{accepted}) == Status::ok)
        ASSERT_LT(++accepted, 100U);
    EXPECT_LE(accepted, 8U + 5U) << "its receive buffers and the remainder limit";
    EXPECT_GE(accepted, 5U);
    slow.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == accepted; }));
    for (const auto& [key, count] : publisher_actor.completions)
        EXPECT_EQ(count, 1) << key;
    EXPECT_EQ(publisher->outstanding(), 0U);
}

// A short stall costs it no message.
TEST_P(SlowSubscribers, DropSubscribersQueueUpToTheLimitBeforeTheyLoseMessages) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop},
                                 .outstanding_limit = 100,
                                 .queue_limit_messages = 5});
    auto slow = stuck(range(1, 1));
    netio::RegisteredBuffer memory{50'000}; // too large for a batch
    for (std::uint64_t i = 0; i < 30; ++i)
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{i}), Status::ok);
    EXPECT_EQ(publisher->snapshot().subscribers.front().waiting, 5U);
    EXPECT_GE(publisher->counters().dropped, 30U - 8U - 5U) << "8: its receive buffers";
}

// None of it is borrowed by the network, but its completions must be reported.
TEST_P(SlowSubscribers, DroppedMessagesGetAgainAtTwiceTheLimitOfUnreportedOnes) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop},
                                 .outstanding_limit = 8,
                                 .queue_limit_messages = 2});
    auto slow = stuck(range(1, 1));
    netio::RegisteredBuffer memory{1000};
    std::uint64_t accepted = 0;
    const auto burst = [&] {
        while (publisher->publish(Fid{1}, memory.slice(), Cookie{accepted}) == Status::ok)
            ASSERT_LT(++accepted - publisher_actor.completions.size(), 17U);
    };
    burst();
    EXPECT_GE(accepted, 8U);
    int bursts = 1;
    publisher_actor.at_room = [&] {
        if (bursts++ < 5) burst();
    };
    ASSERT_TRUE(run_until([&] { return bursts >= 5; })) << "`again` is followed by on_writable";
    slow.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.completions.size() == accepted; }));
    for (const auto& [key, count] : publisher_actor.completions)
        EXPECT_EQ(count, 1) << key;
}

TEST_P(SlowSubscribers, DroppingReportsLossesExactly) {
    auto publisher = buffered({.publisher = {.slow_policy = SlowPolicy::drop},
                               .page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 4 * 1024});
    auto& subscriber = subscribe({range(1, 3)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t number = 0;
    for (int burst = 0; burst < 20; ++burst) {
        for (int i = 0; i < 300; ++i, ++number)
            for (std::uint64_t fid = 1; fid <= 3; ++fid) {
                // Some messages need several pages: they are dropped completely or not at all.
                const std::size_t size = i % 50 == 0 ? 3000 : 40;
                ASSERT_EQ(publish(*publisher, Fid{fid}, number, size), Status::ok);
            }
        ASSERT_TRUE(run_until([&] {
            return subscriber.actor.messages + publisher->counters().dropped == 3 * number;
        }));
    }
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    std::uint64_t gaps = 0;
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        expect_exact_account(subscriber.actor, Fid{fid}, number);
        gaps += subscriber.actor.gaps[Fid{fid}];
    }
    EXPECT_GT(gaps, 0U) << "the test must reach the limit";
    EXPECT_EQ(publisher->counters().dropped, gaps);
    EXPECT_EQ(subscriber.actor.lost, gaps);
}

TEST_P(SlowSubscribers, DroppingUnbufferedMessagesStillCompletesEachOnce) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop},
                                 .outstanding_limit = 4000,
                                 .queue_limit_messages = 4});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{1000 * 64};
    std::uint64_t number = 0;
    for (; number < 1000; ++number) {
        const netio::Slice slice = memory.slice(number * 64, 64);
        std::ranges::copy(make_message(Fid{1}, number, 64), slice.data);
        ASSERT_EQ(publisher->publish(Fid{1}, slice, Cookie{number}), Status::ok);
        if (number % 200 == 199) {
            ASSERT_TRUE(
                run_until([&] { return publisher_actor.completions.size() == number + 1; }));
        }
    }
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    expect_exact_account(subscriber.actor, Fid{1}, number);
    EXPECT_GT(publisher->counters().dropped, 0U);
    EXPECT_EQ(subscriber.actor.lost, publisher->counters().dropped);
    EXPECT_EQ(publisher_actor.completions.size(), number);
    for (const auto& [key, count] : publisher_actor.completions)
        EXPECT_EQ(count, 1) << key;
}

TEST_P(SlowSubscribers, DisconnectingEndsThemAfterTheTimeWithoutProgress) {
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::disconnect,
                                               .disconnect_after = std::chrono::milliseconds{50}},
                                 .queue_limit_messages = 2});
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto slow = stuck(range(1, 1));
    netio::RegisteredBuffer memory{1000};
    std::uint64_t accepted = 0;
    const auto all_taken = [&] {
        while (accepted < 200 &&
               publisher->publish(Fid{1}, memory.slice(), Cookie{accepted}) == Status::ok)
            ++accepted;
        return accepted == 200;
    };
    ASSERT_TRUE(run_until(all_taken));
    ASSERT_EQ(publisher_actor.closed.size(), 1U);
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::too_slow);
    ASSERT_TRUE(run_until([&] { return slow->closed; }));
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 200; }));
}

TEST_P(SlowSubscribers, TheOrderlyEndDoesNotWaitForThemForever) {
    auto publisher = buffered({.publisher = {.close_timeout = std::chrono::milliseconds{50}},
                               .page_size_bytes = 1024,
                               .queue_limit_bytes = 20 * 1024});
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    auto slow = stuck(range(1, 1));
    std::uint64_t number = 0;
    while (publish(*publisher, Fid{1}, number, 500) == Status::ok)
        ++number;
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    honest.actor.expect_contiguous(Fid{1}, 0, number);
    EXPECT_EQ(honest.actor.lost, 0U);
    EXPECT_EQ(honest.actor.totals, 1);
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
    EXPECT_EQ(publisher_actor.end.detail,
              "1 subscriber(s) did not confirm that they received everything");
}

INSTANTIATE_TEST_SUITE_P(Beds, SlowSubscribers, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::slow_test
