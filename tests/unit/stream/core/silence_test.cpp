// SPDX-License-Identifier: Apache-2.0
#include "stream/core/silence.hpp"

#include <gtest/gtest.h>

namespace netio::stream {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint begin{1h};

TEST(Silence, IsTooLongBehindSoMuchOfIt) {
    Silence silence{2s};
    EXPECT_EQ(silence.look_end(begin), begin + 500ms);
    for (int i = 0; i < 4; ++i) {
        EXPECT_FALSE(silence.is_too_long()) << i;
        silence.on_looked(500ms, false);
    }
    EXPECT_TRUE(silence.is_too_long());
}

TEST(Silence, BeginsAnewWithWhatMoves) {
    Silence silence{2s};
    for (int i = 0; i < 100; ++i) {
        silence.on_looked(1ms, false);
        silence.on_looked(500ms, i % 3 == 0);
        ASSERT_FALSE(silence.is_too_long()) << i;
    }
}

TEST(Silence, DoesNotCountWhileTheProcessIsStopped) {
    Silence silence{2s};
    silence.on_looked(500ms, false);
    silence.on_looked(1h, false); // 500 ms of it are the look's
    EXPECT_FALSE(silence.is_too_long());
    silence.on_looked(500ms, false);
    EXPECT_FALSE(silence.is_too_long());
    silence.on_looked(500ms, false);
    EXPECT_TRUE(silence.is_too_long());
}

TEST(Silence, WithoutALimitIsNeverTooLong) {
    Silence silence{0ms};
    EXPECT_EQ(silence.look_end(begin), TimePoint::max());
    silence.on_looked(24h, false);
    EXPECT_FALSE(silence.is_too_long());
}

} // namespace
} // namespace netio::stream
