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

} // namespace
} // namespace netio
