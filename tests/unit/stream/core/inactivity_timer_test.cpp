// SPDX-License-Identifier: Apache-2.0
#include "stream/core/inactivity_timer.hpp"

#include <gtest/gtest.h>

namespace netio::stream::inactivity_timer_test {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint begin{1h};

TEST(InactivityTimer, ExpiresAfterItsLimit) {
    InactivityTimer inactivity{2s};
    EXPECT_EQ(inactivity.poll_deadline(begin), begin + 500ms);
    for (int i = 0; i < 4; ++i) {
        EXPECT_FALSE(inactivity.has_expired()) << i;
        inactivity.on_polled(500ms, false);
    }
    EXPECT_TRUE(inactivity.has_expired());
}

TEST(InactivityTimer, StartsAgainWhenAByteMoves) {
    InactivityTimer inactivity{2s};
    for (int i = 0; i < 100; ++i) {
        inactivity.on_polled(1ms, false);
        inactivity.on_polled(500ms, i % 3 == 0);
        ASSERT_FALSE(inactivity.has_expired()) << i;
    }
}

TEST(InactivityTimer, DoesNotCountAStopOfTheProcess) {
    InactivityTimer inactivity{2s};
    inactivity.on_polled(500ms, false);
    inactivity.on_polled(1h, false); // counts as 500 ms, the period of a look
    EXPECT_FALSE(inactivity.has_expired());
    inactivity.on_polled(500ms, false);
    EXPECT_FALSE(inactivity.has_expired());
    inactivity.on_polled(500ms, false);
    EXPECT_TRUE(inactivity.has_expired());
}

TEST(InactivityTimer, WithoutALimitNeverExpires) {
    InactivityTimer inactivity{0ms};
    EXPECT_EQ(inactivity.poll_deadline(begin), TimePoint::max());
    inactivity.on_polled(24h, false);
    EXPECT_FALSE(inactivity.has_expired());
}

} // namespace
} // namespace netio::stream::inactivity_timer_test
