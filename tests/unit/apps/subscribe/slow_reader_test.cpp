// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/slow_reader.hpp"

#include <gtest/gtest.h>

namespace apps::subscribe {
namespace {

using namespace std::chrono_literals;

constexpr netio::TimePoint start{1h};

TEST(SlowReader, ThinksOverEachMessage) {
    SlowReader reader{{.think = 1ms}, start};
    EXPECT_TRUE(reader.is_slow());
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(reader.hold(start + i * 1h), 1ms);
    EXPECT_FALSE(SlowReader({}, start).is_slow());
}

TEST(SlowReader, PausesOnceInSoLong) {
    SlowReader reader{{.think = 1ms, .pause = 500ms, .every = 10s}, start};
    EXPECT_EQ(reader.hold(start), 1ms);
    EXPECT_EQ(reader.hold(start + 9999ms), 1ms);
    EXPECT_EQ(reader.hold(start + 10s), 501ms);
    EXPECT_EQ(reader.hold(start + 10600ms), 1ms);
    EXPECT_EQ(reader.hold(start + 20100ms), 401ms) << "until it would have ended";
}

TEST(SlowReader, APauseInWhichNothingCameIsOver) {
    SlowReader reader{{.pause = 500ms, .every = 10s}, start};
    EXPECT_EQ(reader.hold(start + 55s), 0ms);
    EXPECT_EQ(reader.hold(start + 60s), 500ms);
}

TEST(SlowReader, APauseIsTwoTimesTheFirstOfThemTheShorter) {
    Slowness slowness;
    EXPECT_TRUE(parse_pause("500ms@10s", slowness));
    EXPECT_EQ(slowness.pause, 500ms);
    EXPECT_EQ(slowness.every, 10s);
    for (const char* const wrong : {"", "500ms", "@", "10s@500ms", "1s@1s", "x@10s", "1s@", "0@1s"})
        EXPECT_FALSE(parse_pause(wrong, slowness)) << wrong;
}

} // namespace
} // namespace apps::subscribe
