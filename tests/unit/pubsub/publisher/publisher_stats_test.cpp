// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/publisher_stats.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

using namespace std::chrono_literals;

TEST(BackpressureTimer, RunsFromTheFirstRefusalToTheNotification) {
    const TimePoint now{};
    BackpressureTimer held_up;
    EXPECT_FALSE(held_up.end(now + 1s)) << "no publication was refused";
    held_up.begin(now + 2s);
    held_up.begin(now + 3s);
    EXPECT_EQ(held_up.time(now + 5s), 3s) << "during the backpressure";
    EXPECT_TRUE(held_up.end(now + 6s));
    EXPECT_FALSE(held_up.end(now + 7s)) << "only once";
    EXPECT_EQ(held_up.time(now + 9s), 4s);
    held_up.begin(now + 10s);
    EXPECT_TRUE(held_up.end(now + 11s));
    EXPECT_EQ(held_up.time(now + 20s), 5s) << "sum of both";
}

TEST(BackpressureTimer, CountsOfEachFidWhatWasRefused) {
    const TimePoint now{};
    BackpressureTimer held_up;
    held_up.refuse(Fid{1}, now + 1s);
    held_up.refuse(Fid{7}, now + 2s);
    held_up.refuse(Fid{1}, now + 3s);
    held_up.begin(now + 4s);
    EXPECT_EQ(held_up.refused().of(Fid{1}), 2U);
    EXPECT_EQ(held_up.refused().of(Fid{7}), 1U);
    EXPECT_EQ(held_up.refused().of(Fid{2}), 0U);
    EXPECT_EQ(held_up.time(now + 5s), 4s) << "from the first refusal";
    EXPECT_TRUE(held_up.end(now + 6s));
    EXPECT_EQ(held_up.refused().of(Fid{1}), 2U);
}

TEST(SubscriberStats, TheQueueMaximumRestartsAtTheCurrentLength) {
    SubscriberStats account{TimePoint{}};
    EXPECT_EQ(account.take_most_waiting(0), 0U);
    account.note_waiting(5);
    account.note_waiting(9);
    account.note_waiting(3);
    EXPECT_EQ(account.take_most_waiting(3), 9U);
    EXPECT_EQ(account.take_most_waiting(1), 3U) << "the queued messages at the restart";
    EXPECT_EQ(account.take_most_waiting(4), 4U) << "the current value counts";
}

TEST(SubscriberStats, LeastCreditsRestartAtCurrent) {
    SubscriberStats account{TimePoint{}};
    EXPECT_EQ(account.take_least_credits(8), 8U) << "nothing was sent";
    account.note_credits(5);
    account.note_credits(2);
    account.note_credits(6);
    EXPECT_EQ(account.take_least_credits(7), 2U);
    EXPECT_EQ(account.take_least_credits(8), 7U) << "the free credits at the restart";
    EXPECT_EQ(account.take_least_credits(4), 4U) << "the current value counts";
}

TEST(SubscriberStats, AddsUpWhatWasMissedAndHowLongFramesTook) {
    SubscriberStats account{TimePoint{std::chrono::seconds{7}}};
    account.note_dropped(3);
    account.note_dropped(4);
    account.note_sent(std::chrono::microseconds{10});
    EXPECT_EQ(account.dropped(), 7U);
    EXPECT_EQ(account.latency().count(), 1U);
    EXPECT_EQ(account.since(), TimePoint{std::chrono::seconds{7}});
}

} // namespace
} // namespace netio::pubsub
