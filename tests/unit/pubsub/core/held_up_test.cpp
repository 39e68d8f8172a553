// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/held_up.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

using namespace std::chrono_literals;

TEST(HeldUp, GoesFromTheFirstRefusalUntilItsUserIsTold) {
    const TimePoint now{};
    HeldUp held_up;
    EXPECT_FALSE(held_up.end(now + 1s)) << "nobody was refused";
    held_up.begin(now + 2s);
    held_up.begin(now + 3s);
    EXPECT_EQ(held_up.time(now + 5s), 3s) << "while it goes on";
    EXPECT_TRUE(held_up.end(now + 6s));
    EXPECT_FALSE(held_up.end(now + 7s)) << "told once";
    EXPECT_EQ(held_up.time(now + 9s), 4s);
    held_up.begin(now + 10s);
    EXPECT_TRUE(held_up.end(now + 11s));
    EXPECT_EQ(held_up.time(now + 20s), 5s) << "all of them together";
}

} // namespace
} // namespace netio::pubsub
