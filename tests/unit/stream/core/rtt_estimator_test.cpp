// SPDX-License-Identifier: Apache-2.0
#include "stream/core/rtt_estimator.hpp"

#include <gtest/gtest.h>

namespace netio::stream::rtt_estimator_test {
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
    EXPECT_TRUE(after(2ms, 1'000)) << "part of the time is not delay of the path";
}

TEST_F(RingGaugeTest, P11ARingInManyRoundTripsIsNotTooSmall) {
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
    EXPECT_TRUE(after(1ms, 1)) << "with the 999 bytes before it is enough";
    EXPECT_FALSE(after(1ms, 1'000, 2'000)) << "half of the larger ring";
    EXPECT_TRUE(after(1ms, 1'000, 2'000));
}

TEST_F(RingGaugeTest, P11MoreBytesThanARingMayTakeLonger) {
    EXPECT_FALSE(after(1ms, 1'000));
    EXPECT_TRUE(after(6ms, 3'000));
    EXPECT_FALSE(after(7ms, 3'000));
}

constexpr auto start = 1h;

TEST(RttEstimator, ReportsTheShortestInterval) {
    RttEstimator accepting{start, true, 0ns};
    EXPECT_EQ(accepting.shortest(), RttEstimator::Duration::max());
    accepting.on_session_open(start + 90us);
    accepting.on_ring_sent(start + 100us);
    accepting.on_ring_arrived(start + 110us); // sent by the peer without a request
    EXPECT_EQ(accepting.shortest(), 90us);
    accepting.on_control(start + 150us);
    EXPECT_EQ(accepting.shortest(), 50us);

    RttEstimator connecting{start, false, 0ns};
    connecting.on_session_open(start + 10us); // not an answer of the peer
    connecting.on_ring_sent(start + 20us);
    connecting.on_ring_arrived(start + 90us);
    EXPECT_EQ(connecting.shortest(), 70us);
    connecting.on_control(start + 5s); // delay of a user
    EXPECT_EQ(connecting.shortest(), 70us);
}

TEST(RttEstimator, HasAGaugeAfterTheFirstControlMessageOnly) {
    RttEstimator rtt{start, false, 0ns};
    rtt.on_ring_sent(start);
    EXPECT_FALSE(rtt.gauge());
    rtt.on_control(start + 1ms);
    ASSERT_TRUE(rtt.gauge());
    rtt.on_control(start + 1ms + 1us);
    EXPECT_EQ(rtt.shortest(), 1ms);
}

TEST(RttEstimator, SpreadsControlMessagesOverALongWayOnly) {
    RttEstimator near{start, false, 0ns};
    near.on_ring_sent(start);
    near.on_control(start + 1ms);
    EXPECT_EQ(near.control_pause(), 0ns);
    RttEstimator far{start, false, 0ns};
    far.on_ring_sent(start);
    far.on_control(start + 16ms);
    EXPECT_EQ(far.control_pause(), 1ms);
}

} // namespace
} // namespace netio::stream::rtt_estimator_test
