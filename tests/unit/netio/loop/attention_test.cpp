// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/attention.hpp"

#include <gtest/gtest.h>

namespace netio {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint begin{1h};

TEST(Attention, EverydayGapsAreNoStall) {
    Attention attention{begin};
    TimePoint now = begin;
    for (int i = 0; i < 1000; ++i) {
        now += Attention::tolerance;
        attention.looked(now, now, TimePoint::min());
    }
    EXPECT_EQ(attention.stalled(), 0s);
}

TEST(Attention, ALongHandlerIsAStall) {
    Attention attention{begin};
    attention.looked(begin + 40s, begin + 40s, TimePoint::min());
    EXPECT_EQ(attention.stalled(), 40s - Attention::tolerance);
}

TEST(Attention, SleepingIsLooking) {
    Attention attention{begin};
    attention.looked(begin, begin + 40s, begin + 40s);
    attention.looked(begin + 40s, begin + 50s, TimePoint::max());
    EXPECT_EQ(attention.stalled(), 0s);
    EXPECT_EQ(attention.sleep_count(), 2U);
}

TEST(Attention, AWaitThatEndsLateWasAStopOfTheProcess) {
    Attention attention{begin};
    attention.looked(begin, begin + 45s, begin + 5s);
    EXPECT_EQ(attention.stalled(), 40s - Attention::tolerance);
}

TEST(Attention, AStopWhileOnlyLookingCountsFromTheLook) {
    Attention attention{begin};
    attention.looked(begin + 1ms, begin + 30s + 1ms, TimePoint::min());
    EXPECT_EQ(attention.stalled(), 30s - Attention::tolerance);
    EXPECT_EQ(attention.sleep_count(), 0U);
}

TEST(Attention, ARestInAnotherLoopIsLookingUntilSomethingIsDue) {
    Attention attention{begin};
    attention.rest();
    attention.go_on(begin + 40s); // woken then by a descriptor
    attention.looked(begin + 40s, begin + 40s, TimePoint::min());
    EXPECT_EQ(attention.stalled(), 0s);
    attention.rest();
    attention.go_on(begin + 50s); // a timer was due then, and the other loop was busy
    attention.looked(begin + 57s, begin + 57s, TimePoint::min());
    EXPECT_EQ(attention.stalled(), 7s - Attention::tolerance);
}

TEST(Attention, ARestExcusesOneGapOnly) {
    Attention attention{begin};
    attention.go_on(begin + 40s); // without a rest
    attention.looked(begin + 40s, begin + 40s, TimePoint::min());
    EXPECT_EQ(attention.stalled(), 40s - Attention::tolerance);
    attention.rest();
    attention.go_on(begin + 50s);
    attention.looked(begin + 50s, begin + 50s, TimePoint::min());
    attention.looked(begin + 60s, begin + 60s, TimePoint::min());
    EXPECT_EQ(attention.stalled(), 50s - 2 * Attention::tolerance);
}

TEST(Attention, LooksAreDueByTimeAndByTurns) {
    Attention attention{begin};
    EXPECT_FALSE(attention.look_is_due(begin, 1ms));
    EXPECT_TRUE(attention.look_is_due(begin + 1ms, 1ms));
    attention.looked(begin + 1ms, begin + 1ms, TimePoint::min());
    unsigned turns = 1;
    while (!attention.look_is_due(begin + 1ms, 1ms))
        ++turns;
    EXPECT_EQ(turns, Attention::turns_between_looks);
}

TEST(Attention, HasCaughtUpWithWhatItsLastLookFound) {
    Attention attention{begin};
    attention.looked(begin + 1s, begin + 2s, TimePoint::max());
    EXPECT_EQ(attention.last_caught_up(), begin);
    attention.caught_up();
    EXPECT_EQ(attention.last_caught_up(), begin + 2s);
}

TEST(Attention, ALookThatMayNotTakeTimeIsNoSleep) {
    Attention attention{begin};
    attention.looked(begin, begin, begin);
    EXPECT_EQ(attention.sleep_count(), 0U);
    attention.looked(begin, begin, begin + 1ns);
    EXPECT_EQ(attention.sleep_count(), 1U);
}

} // namespace
} // namespace netio
