// SPDX-License-Identifier: Apache-2.0
#include "apps/common/player.hpp"

#include <gtest/gtest.h>

namespace apps::replay::pace_test {
namespace {

using namespace std::chrono_literals;
using netio::TimePoint;

constexpr TimePoint start{1000s};

TEST(Pace, DividesTheRecordedTimesByTheFactor) {
    Pace pace{2.0};
    EXPECT_EQ(pace.due(0s, start), start);
    EXPECT_EQ(pace.due(10s, start + 1s), start + 5s);
    EXPECT_EQ(pace.due(10s, start + 5s), start + 5s);
}

TEST(Pace, CatchesUpOneSecondAndPutsOffTheRest) {
    Pace pace{1.0};
    EXPECT_EQ(pace.due(0s, start), start);
    EXPECT_EQ(pace.due(1s, start + 1900ms), start + 1s);
    EXPECT_EQ(pace.put_off(), 0s);
    EXPECT_EQ(pace.due(2s, start + 5s), start + 4s);
    EXPECT_EQ(pace.put_off(), 2s);
    EXPECT_EQ(pace.due(3s, start + 5s), start + 5s);
}

TEST(Pace, HasNoScheduleAtTheLargestRate) {
    Pace pace{std::nullopt};
    EXPECT_EQ(pace.due(100h, start), TimePoint{});
    pace.published(TimePoint{}, start);
    EXPECT_EQ(pace.deviation().count(), 0U);
}

TEST(Pace, KeepsALongTimeAtASmallFactorInRange) {
    Pace pace{1e-6};
    EXPECT_EQ(pace.due(0s, start), start);
    EXPECT_GT(pace.due(24h * 3650, start), start + 1h);
}

} // namespace
} // namespace apps::replay::pace_test
