// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/turn_meter.hpp"

#include <gtest/gtest.h>

namespace netio {
namespace {

using namespace std::chrono_literals;

TEST(TurnMeter, RestsFromATurnThatFoundNothingToTheNext) {
    const TimePoint begin{1s};
    TurnMeter turns;
    turns.begin(begin);
    turns.add(5ms);
    turns.begin(begin + 5ms);
    EXPECT_EQ(turns.rested(), 0s);
    turns.begin(begin + 25ms);
    EXPECT_EQ(turns.rested(), 20ms);
    turns.add(15ms);
    turns.begin(begin + 40ms);
    EXPECT_EQ(turns.rested(), 20ms);
    turns.begin(begin + 41ms);
    EXPECT_EQ(turns.rested(), 21ms);
}

TEST(TurnMeter, WhoeverDrivesTheLoopDoesNotRestUnlessItSaysSo) {
    const TimePoint begin{1s};
    TurnMeter turns;
    turns.begin(begin);
    turns.leave();
    turns.begin(begin + 10ms);
    EXPECT_EQ(turns.rested(), 0s);
    turns.leave();
    turns.rest(begin + 15ms);
    turns.begin(begin + 35ms);
    EXPECT_EQ(turns.rested(), 20ms);
}

TEST(TurnMeter, SaysTheLongestSinceItWasAskedLast) {
    TurnMeter turns;
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
} // namespace netio
