// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/loop_work.hpp"

#include <gtest/gtest.h>

namespace netio::loop_stats_test {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint begin{1h};

TEST(PollTracker, EverydayGapsAreNoStall) {
    PollTracker tracker{begin};
    TimePoint now = begin;
    for (int i = 0; i < 1000; ++i) {
        now += PollTracker::tolerance;
        tracker.polled(now, now, TimePoint::min());
    }
    EXPECT_EQ(tracker.stalled(), 0s);
}

TEST(PollTracker, ALongHandlerIsAStall) {
    PollTracker tracker{begin};
    tracker.polled(begin + 40s, begin + 40s, TimePoint::min());
    EXPECT_EQ(tracker.stalled(), 40s - PollTracker::tolerance);
}

TEST(PollTracker, SleepingIsLooking) {
    PollTracker tracker{begin};
    tracker.polled(begin, begin + 40s, begin + 40s);
    tracker.polled(begin + 40s, begin + 50s, TimePoint::max());
    EXPECT_EQ(tracker.stalled(), 0s);
    EXPECT_EQ(tracker.sleep_count(), 2U);
}

TEST(PollTracker, AWaitThatEndsLateWasAStopOfTheProcess) {
    PollTracker tracker{begin};
    tracker.polled(begin, begin + 45s, begin + 5s);
    EXPECT_EQ(tracker.stalled(), 40s - PollTracker::tolerance);
}

TEST(PollTracker, AStopWhileOnlyLookingCountsFromTheLook) {
    PollTracker tracker{begin};
    tracker.polled(begin + 1ms, begin + 30s + 1ms, TimePoint::min());
    EXPECT_EQ(tracker.stalled(), 30s - PollTracker::tolerance);
    EXPECT_EQ(tracker.sleep_count(), 0U);
}

TEST(PollTracker, ARestInAnotherLoopIsLookingUntilSomethingIsDue) {
    PollTracker tracker{begin};
    tracker.rest();
    tracker.resume(begin + 40s); // woken by a descriptor
    tracker.polled(begin + 40s, begin + 40s, TimePoint::min());
    EXPECT_EQ(tracker.stalled(), 0s);
    tracker.rest();
    tracker.resume(begin + 50s); // a timer was due, and the other loop was busy
    tracker.polled(begin + 57s, begin + 57s, TimePoint::min());
    EXPECT_EQ(tracker.stalled(), 7s - PollTracker::tolerance);
}

TEST(PollTracker, ARestExcusesOneGapOnly) {
    PollTracker tracker{begin};
    tracker.resume(begin + 40s); // without rest()
    tracker.polled(begin + 40s, begin + 40s, TimePoint::min());
    EXPECT_EQ(tracker.stalled(), 40s - PollTracker::tolerance);
    tracker.rest();
    tracker.resume(begin + 50s);
    tracker.polled(begin + 50s, begin + 50s, TimePoint::min());
    tracker.polled(begin + 60s, begin + 60s, TimePoint::min());
    EXPECT_EQ(tracker.stalled(), 50s - 2 * PollTracker::tolerance);
}

TEST(PollTracker, LooksAreDueByTimeAndByTurns) {
    PollTracker tracker{begin};
    EXPECT_FALSE(tracker.poll_is_due(begin, 1ms));
    EXPECT_TRUE(tracker.poll_is_due(begin + 1ms, 1ms));
    tracker.polled(begin + 1ms, begin + 1ms, TimePoint::min());
    unsigned turns = 1;
    while (!tracker.poll_is_due(begin + 1ms, 1ms))
        ++turns;
    EXPECT_EQ(turns, PollTracker::turns_between_polls);
}

TEST(PollTracker, HasCaughtUpAfterTheWorkOfItsLastPoll) {
    PollTracker tracker{begin};
    tracker.polled(begin + 1s, begin + 2s, TimePoint::max());
    EXPECT_EQ(tracker.last_caught_up(), begin);
    tracker.caught_up();
    EXPECT_EQ(tracker.last_caught_up(), begin + 2s);
}

TEST(PollTracker, ALookThatMayNotTakeTimeIsNoSleep) {
    PollTracker tracker{begin};
    tracker.polled(begin, begin, begin);
    EXPECT_EQ(tracker.sleep_count(), 0U);
    tracker.polled(begin, begin, begin + 1ns);
    EXPECT_EQ(tracker.sleep_count(), 1U);
}

TEST(LoopStats, RestsFromATurnThatFoundNothingToTheNext) {
    const TimePoint start{1s};
    LoopStats turns;
    turns.begin(start);
    turns.add(5ms);
    turns.begin(start + 5ms);
    EXPECT_EQ(turns.rested(), 0s);
    turns.begin(start + 25ms);
    EXPECT_EQ(turns.rested(), 20ms);
    turns.add(15ms);
    turns.begin(start + 40ms);
    EXPECT_EQ(turns.rested(), 20ms);
    turns.begin(start + 41ms);
    EXPECT_EQ(turns.rested(), 21ms);
}

TEST(LoopStats, AnOuterLoopCountsAsRestingOnlyAfterRest) {
    const TimePoint start{1s};
    LoopStats turns;
    turns.begin(start);
    turns.leave();
    turns.begin(start + 10ms);
    EXPECT_EQ(turns.rested(), 0s);
    turns.leave();
    turns.rest(start + 15ms);
    turns.begin(start + 35ms);
    EXPECT_EQ(turns.rested(), 20ms);
}

TEST(LoopStats, ReportsTheLongestTurnSinceTheLastCall) {
    LoopStats turns;
    EXPECT_EQ(turns.take_longest_lately(), 0s);
    for (const Duration taken : {Duration{3ms}, Duration{70ms}, Duration{20ms}})
        turns.add(taken);
    EXPECT_EQ(turns.take_longest_lately(), 70ms);
    EXPECT_EQ(turns.take_longest_lately(), 0s);
    turns.add(5ms);
    EXPECT_EQ(turns.take_longest_lately(), 5ms);
    EXPECT_EQ(turns.longest(), 70ms);
    EXPECT_EQ(turns.count(), 4U);
}

} // namespace
} // namespace netio::loop_stats_test
