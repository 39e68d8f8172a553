// SPDX-License-Identifier: Apache-2.0
#include "stream/core/ring_gauge.hpp"

#include <gtest/gtest.h>

namespace netio::stream {
namespace {

using namespace std::chrono_literals;

constexpr auto round_trip = 1ms;
constexpr std::uint64_t ring_bytes = 1'000;

class RingGaugeTest : public testing::Test {
  protected:
    bool after(std::chrono::nanoseconds elapsed, std::uint64_t bytes,
               std::uint64_t ring = ring_bytes) {
        now += elapsed;
        total += bytes;
        return gauge.confirms(now, total, ring);
    }

    RingGauge gauge{round_trip};
    std::chrono::nanoseconds now = 5h;
    std::uint64_t total = 0;
};

TEST_F(RingGaugeTest, P11ARingPerRoundTripIsLimitedByTheDistance) {
    EXPECT_FALSE(after(1ms, 1'000)) << "nothing to compare with yet";
    EXPECT_TRUE(after(1ms, 1'000));
    EXPECT_TRUE(after(2ms, 1'000)) << "some of the time is not the way's";
}

TEST_F(RingGaugeTest, P11ARingInManyRoundTripsIsLimitedBySomethingElse) {
    EXPECT_FALSE(after(1ms, 1'000));
    EXPECT_FALSE(after(2001us, 1'000));
    EXPECT_FALSE(after(1h, 1'000));
}

TEST_F(RingGaugeTest, P11ABreakCountsOnlyOnce) {
    EXPECT_FALSE(after(1ms, 1'000));
    EXPECT_FALSE(after(1h, 1'000));
    EXPECT_TRUE(after(1ms, 1'000));
}

TEST_F(RingGaugeTest, P11FewerBytesThanARingTellNothing) {
    EXPECT_FALSE(after(1ms, 1'000));
    EXPECT_FALSE(after(1ns, 999));
    EXPECT_TRUE(after(1ms, 1)) << "together they do";
    EXPECT_FALSE(after(1ms, 1'000, 2'000)) << "of the larger ring";
    EXPECT_TRUE(after(1ms, 1'000, 2'000));
}

TEST_F(RingGaugeTest, P11MoreBytesThanARingMayTakeLonger) {
    EXPECT_FALSE(after(1ms, 1'000));
    EXPECT_TRUE(after(6ms, 3'000));
    EXPECT_FALSE(after(7ms, 3'000));
}

} // namespace
} // namespace netio::stream
