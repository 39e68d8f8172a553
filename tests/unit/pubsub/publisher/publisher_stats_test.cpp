// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscriber_session.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::publisher_stats_test {
namespace {

using namespace std::chrono_literals;

TEST(BackpressureTimer, RunsFromTheFirstRefusalToTheNotification) {
    const TimePoint now{};
    BackpressureTimer timer;
    EXPECT_FALSE(timer.end(now + 1s)) << "no publication was refused";
    timer.begin(now + 2s);
    timer.begin(now + 3s);
    EXPECT_EQ(timer.time(now + 5s), 3s) << "during the backpressure";
    EXPECT_TRUE(timer.end(now + 6s));
    EXPECT_FALSE(timer.end(now + 7s)) << "only once";
    EXPECT_EQ(timer.time(now + 9s), 4s);
    timer.begin(now + 10s);
    EXPECT_TRUE(timer.end(now + 11s));
    EXPECT_EQ(timer.time(now + 20s), 5s) << "sum of both";
}

TEST(BackpressureTimer, CountsOfEachFidWhatWasRefused) {
    const TimePoint now{};
    BackpressureTimer timer;
    timer.refuse(Fid{1}, now + 1s);
    timer.refuse(Fid{7}, now + 2s);
    timer.refuse(Fid{1}, now + 3s);
    timer.begin(now + 4s);
    EXPECT_EQ(timer.refused().of(Fid{1}), 2U);
    EXPECT_EQ(timer.refused().of(Fid{7}), 1U);
    EXPECT_EQ(timer.refused().of(Fid{2}), 0U);
    EXPECT_EQ(timer.time(now + 5s), 4s) << "from the first refusal";
    EXPECT_TRUE(timer.end(now + 6s));
    EXPECT_EQ(timer.refused().of(Fid{1}), 2U);
}

TEST(SubscriberStats, TheQueueMaximumRestartsAtTheCurrentLength) {
    SubscriberStats stats{TimePoint{}};
    EXPECT_EQ(stats.take_most_waiting(0), 0U);
    stats.note_waiting(5);
    stats.note_waiting(9);
    stats.note_waiting(3);
    EXPECT_EQ(stats.take_most_waiting(3), 9U);
    EXPECT_EQ(stats.take_most_waiting(1), 3U) << "the queued messages at the restart";
    EXPECT_EQ(stats.take_most_waiting(4), 4U) << "the current value counts";
}

TEST(SubscriberStats, LeastCreditsRestartAtCurrent) {
    SubscriberStats stats{TimePoint{}};
    EXPECT_EQ(stats.take_least_credits(8), 8U) << "nothing was sent";
    stats.note_credits(5);
    stats.note_credits(2);
    stats.note_credits(6);
    EXPECT_EQ(stats.take_least_credits(7), 2U);
    EXPECT_EQ(stats.take_least_credits(8), 7U) << "the free credits at the restart";
    EXPECT_EQ(stats.take_least_credits(4), 4U) << "the current value counts";
}

TEST(SubscriberStats, AddsUpWhatWasDroppedAndHowLongFramesTook) {
    SubscriberStats stats{TimePoint{std::chrono::seconds{7}}};
    stats.note_dropped(3);
    stats.note_dropped(4);
    stats.note_sent(std::chrono::microseconds{10});
    EXPECT_EQ(stats.dropped(), 7U);
    EXPECT_EQ(stats.latency().count(), 1U);
    EXPECT_EQ(stats.since(), TimePoint{std::chrono::seconds{7}});
}

} // namespace
} // namespace netio::pubsub::publisher_stats_test
