// SPDX-License-Identifier: Apache-2.0
#include "apps/common/sizes.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace apps {
namespace {

std::vector<std::size_t> draw(const Sizes& sizes, std::uint64_t seed, std::size_t count) {
    SizeSequence sequence{sizes, seed};
    std::vector<std::size_t> drawn;
    for (std::size_t i = 0; i < count; ++i)
        drawn.push_back(sequence.next());
    return drawn;
}

double mean(const std::vector<std::size_t>& values) {
    double sum = 0;
    for (const std::size_t value : values)
        sum += static_cast<double>(value);
    return sum / static_cast<double>(values.size());
}

TEST(Sizes, FixedAndListsAreWhatTheySay) {
    EXPECT_THAT(draw(FixedSize{40}, 1, 3), testing::ElementsAre(40, 40, 40));
    EXPECT_THAT(draw(SizeList{{1, 2, 3}}, 1, 5), testing::ElementsAre(1, 2, 3, 1, 2));
}

TEST(Sizes, TheSameSeedGivesTheSameSizes) {
    const Sizes uniform = UniformSize{.min = 1, .max = 1000};
    EXPECT_EQ(draw(uniform, 5, 100), draw(uniform, 5, 100));
    EXPECT_NE(draw(uniform, 5, 100), draw(uniform, 6, 100));
}

TEST(Sizes, UniformReachesBothEndsAndNothingBeyond) {
    const auto drawn = draw(UniformSize{.min = 10, .max = 13}, 1, 1000);
    EXPECT_THAT(drawn, testing::Each(testing::AllOf(testing::Ge(10U), testing::Le(13U))));
    for (const std::size_t size : {10U, 11U, 12U, 13U})
        EXPECT_NEAR(static_cast<double>(std::ranges::count(drawn, size)), 250, 60) << size;
}

TEST(Sizes, NormalHasItsMeanAndStaysWithinItsBounds) {
    const auto drawn =
        draw(NormalSize{.mean = 1000, .stddev = 100, .min = 900, .max = 1100}, 1, 10000);
    EXPECT_THAT(drawn, testing::Each(testing::AllOf(testing::Ge(900U), testing::Le(1100U))));
    EXPECT_NEAR(mean(drawn), 1000, 5);
    // A sixth lies beyond one standard deviation on each side and is moved to the bound.
    EXPECT_NEAR(static_cast<double>(std::ranges::count(drawn, 900U)), 1587, 200);
}

TEST(Sizes, ExponentialHasItsMean) {
    const auto drawn = draw(ExponentialSize{.mean = 500, .min = 0, .max = 1000000}, 1, 20000);
    EXPECT_NEAR(mean(drawn), 500, 20);
    const auto below = std::ranges::count_if(drawn, [](std::size_t size) { return size < 500; });
    EXPECT_NEAR(static_cast<double>(below) / 20000, 1 - std::exp(-1), 0.02);
}

TEST(Sizes, KnowTheirExtremes) {
    EXPECT_EQ(smallest(SizeList{{5, 2, 9}}), 2U);
    EXPECT_EQ(largest(SizeList{{5, 2, 9}}), 9U);
    EXPECT_EQ(largest(FixedSize{7}), 7U);
    EXPECT_EQ(smallest(NormalSize{.mean = 5, .stddev = 1, .min = 3, .max = 8}), 3U);
    EXPECT_EQ(largest(ExponentialSize{.mean = 5, .min = 3, .max = 8}), 8U);
}

} // namespace
} // namespace apps
