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

TEST(HeldUp, CountsOfEachFidWhatWasRefused) {
    const TimePoint now{};
    HeldUp held_up;
    held_up.refuse(Fid{1}, now + 1s);
    held_up.refuse(Fid{7}, now + 2s);
    held_up.refuse(Fid{1}, now + 3s);
    held_up.begin(now + 4s);
    EXPECT_EQ(held_up.refused().of(Fid{1}), 2U);
    EXPECT_EQ(held_up.refused().of(Fid{7}), 1U);
    EXPECT_EQ(held_up.refused().of(Fid{2}), 0U);
    EXPECT_EQ(held_up.time(now + 5s), 4s) << "from the first on";
    EXPECT_TRUE(held_up.end(now + 6s));
    EXPECT_EQ(held_up.refused().of(Fid{1}), 2U);
}

} // namespace
} // namespace netio::pubsub
