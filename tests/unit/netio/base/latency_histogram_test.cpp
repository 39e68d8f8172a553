// SPDX-License-Identifier: Apache-2.0
#include "netio/base/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace netio::latency_histogram_test {
namespace {

using std::chrono::nanoseconds;

TEST(LatencyHistogram, KnowsNothingOfNothing) {
    const LatencyHistogram empty;
    EXPECT_EQ(empty.count(), 0U);
    EXPECT_EQ(empty.quantile(0.5), Duration::zero());
    EXPECT_EQ(empty.longest(), Duration::zero());
}

TEST(LatencyHistogram, EveryQuantileIsAccurateToAQuarter) {
    std::mt19937_64 random{1};
    std::lognormal_distribution<double> draw{9, 3};
    LatencyHistogram histogram;
    std::vector<std::int64_t> values;
    for (int i = 0; i < 20000; ++i) {
        values.push_back(static_cast<std::int64_t>(std::min(draw(random), 9e15)));
        histogram.add(nanoseconds{values.back()});
    }
    std::ranges::sort(values);
    ASSERT_EQ(histogram.count(), values.size());
    EXPECT_EQ(histogram.longest().count(), values.back());
    for (const double part : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(part * 20000.0)) - 1;
        const std::int64_t shown = histogram.quantile(part).count();
        EXPECT_GE(shown, values[rank]) << part;
        EXPECT_LE(shown, values[rank] + values[rank] / 4 + 1) << part;
    }
}

TEST(LatencyHistogram, CountsExactlyBelowAPowerOfTwo) {
    LatencyHistogram histogram;
    for (const std::int64_t value : {0, 1, 3, 4, 7, 8, 1023, 1024, 1025})
        histogram.add(nanoseconds{value});
    EXPECT_EQ(histogram.count_below_power(0), 1U);
    EXPECT_EQ(histogram.count_below_power(2), 3U);
    EXPECT_EQ(histogram.count_below_power(3), 5U);
    EXPECT_EQ(histogram.count_below_power(10), 7U);
    EXPECT_EQ(histogram.count_below_power(11), 9U);
    EXPECT_EQ(histogram.count_below_power(64), 9U);
}

TEST(LatencyHistogram, TakesTheLongestThatThereIsAndNegativeOnes) {
    LatencyHistogram histogram;
    histogram.add(Duration::max());
    histogram.add(nanoseconds{-5});
    EXPECT_EQ(histogram.count(), 2U);
    EXPECT_EQ(histogram.quantile(0.5), Duration::zero());
    EXPECT_EQ(histogram.quantile(1), Duration::max());
}

TEST(LatencyHistogram, HoldsWhatAnotherHeldToo) {
    LatencyHistogram one;
    LatencyHistogram other;
    one.add(nanoseconds{10});
    other.add(nanoseconds{1000});
    one.add(other);
    EXPECT_EQ(one.count(), 2U);
    EXPECT_EQ(one.sum(), nanoseconds{1010});
    EXPECT_EQ(one.longest(), nanoseconds{1000});
}

} // namespace
} // namespace netio::latency_histogram_test
