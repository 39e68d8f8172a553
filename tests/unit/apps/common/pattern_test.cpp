// SPDX-License-Identifier: Apache-2.0
#include "apps/common/pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace apps::pattern_test {
namespace {

using netio::pubsub::Fid;

std::vector<std::byte> message(Fid fid, std::uint64_t sequence, std::size_t size) {
    std::vector<std::byte> made(size);
    fill_pattern(made, fid, sequence);
    return made;
}

TEST(Pattern, UnchangedMessagesAreSound) {
    PatternChecker checker;
    for (std::uint64_t sequence = 0; sequence < 300; ++sequence)
        checker.check(Fid{9}, message(Fid{9}, sequence, smallest_pattern_bytes + sequence));
    EXPECT_EQ(checker.total(), PatternCounts{.messages = 300});
}

TEST(Pattern, EveryFlippedBitIsNoticed) {
    for (const std::size_t size : {8U, 9U, 16U, 23U, 24U, 25U, 31U, 32U, 40U, 100U}) {
        const auto sound = message(Fid{3}, 77, size);
        for (std::size_t bit = 0; bit < size * 8; ++bit) {
            auto damaged = sound;
            damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            PatternChecker checker;
            checker.check(Fid{3}, damaged);
            ASSERT_EQ(checker.total().corrupt, 1U) << "size " << size << " bit " << bit;
        }
    }
}

TEST(Pattern, EveryOtherLengthIsNoticed) {
    const auto whole = message(Fid{3}, 5, 60);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        PatternChecker checker;
        checker.check(Fid{3}, std::span{whole}.first(size));
        ASSERT_EQ(checker.total().truncated, size < whole_pattern_bytes ? 0U : 1U) << size;
        ASSERT_EQ(checker.total().corrupt, size < whole_pattern_bytes ? 1U : 0U) << size;
    }
    auto longer = whole;
    longer.push_back(std::byte{0});
    PatternChecker checker;
    checker.check(Fid{3}, longer);
    EXPECT_EQ(checker.total().corrupt, 1U);
}

TEST(Pattern, EightBytesAreEnough) {
    PatternChecker checker;
    for (const std::uint64_t sequence : {0U, 1U, 2U, 2U, 5U, 4U, 6U})
        checker.check(Fid{9}, message(Fid{9}, sequence, 8));
    EXPECT_EQ(checker.total(),
              (PatternCounts{.messages = 7, .lost = 1, .reordered = 1, .duplicates = 1}));
    checker.check(Fid{8}, message(Fid{9}, 7, 8));
    EXPECT_EQ(checker.total().corrupt, 1U);
}

// They contain only 32 bits of the number.
TEST(Pattern, ShortOnesAreInOrderWhereTheirNumbersWrap) {
    PatternChecker checker;
    for (std::uint64_t sequence = UINT32_MAX - 10; sequence < UINT32_MAX + std::uint64_t{10};
         ++sequence) {
        checker.check(Fid{9}, message(Fid{9}, sequence, 12));
    }
    checker.check(Fid{9}, message(Fid{9}, UINT32_MAX, 12));
    EXPECT_EQ(checker.total(), (PatternCounts{.messages = 21, .duplicates = 1}));
}

TEST(Pattern, AMessageUnderAWrongFidIsCorrupt) {
    PatternChecker checker;
    checker.check(Fid{4}, message(Fid{3}, 0, 40));
    EXPECT_EQ(checker.total().corrupt, 1U);
    EXPECT_EQ(checker.counts(Fid{4}).corrupt, 1U);
    EXPECT_EQ(checker.counts(Fid{3}), PatternCounts{});
}

TEST(Pattern, ALateSubscriberHasLostNothing) {
    PatternChecker checker;
    checker.check(Fid{1}, message(Fid{1}, 1000, 24));
    checker.check(Fid{1}, message(Fid{1}, 1001, 24));
    EXPECT_EQ(checker.total().lost, 0U);
    checker.check(Fid{1}, message(Fid{1}, 999, 24)); // before the first: late, not lost
    EXPECT_EQ(checker.total().reordered, 1U);
    EXPECT_EQ(checker.total().lost, 0U);
    EXPECT_EQ(checker.first(Fid{1}), 1000U);
    EXPECT_EQ(checker.first(Fid{2}), std::nullopt);
}

// Messages in flight when a fid moved may arrive after the first message of the next publisher.
TEST(Pattern, TwoPublishersOfAFidHaveNumbersOfTheirOwn) {
    PatternChecker checker;
    const auto arrives = [&](std::uint32_t publisher, std::uint64_t number, std::size_t bytes) {
        checker.check(Fid{1}, message(Fid{1}, number, bytes), publisher);
    };
    for (const std::size_t bytes : {24U, 12U}) {
        checker = {};
        arrives(1, 7, bytes);
        arrives(1, 8, bytes);
        arrives(2, 0, bytes);
        arrives(1, 9, bytes);
        arrives(2, 1, bytes);
        EXPECT_EQ(checker.total(), PatternCounts{.messages = 5}) << bytes;
        EXPECT_EQ(checker.first(Fid{1}), 7U);
        arrives(1, 11, bytes);
        EXPECT_EQ(checker.total().lost, 1U) << "number 10 of the first publisher";
        arrives(2, 1, bytes);
        EXPECT_EQ(checker.total().duplicates, 1U) << "of the second publisher";
        arrives(3, 40, bytes);
        arrives(3, 41, bytes);
        EXPECT_EQ(checker.total(), (PatternCounts{.messages = 9, .lost = 1, .duplicates = 1}));
    }
}

TEST(Pattern, ADuplicateThatIsVeryOldIsStillADuplicate) {
    PatternChecker checker;
    for (std::uint64_t sequence = 0; sequence < 200; ++sequence)
        checker.check(Fid{1}, message(Fid{1}, sequence, 24));
    checker.check(Fid{1}, message(Fid{1}, 0, 24));
    EXPECT_EQ(checker.total().duplicates, 1U);
}

// Random losses, repetitions, swaps of neighbours and damage, compared with exact counts.
TEST(Pattern, CountsEveryChangeOfTheStreamExactly) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random{seed};
        PatternChecker checker;
        PatternCounts truth;
        const auto send = [&](std::uint64_t sequence, bool damaged = false) {
            auto bytes = message(Fid{7}, sequence, 24 + random() % 40);
            if (damaged) bytes[random() % 24] ^= std::byte{0x10};
            checker.check(Fid{7}, bytes);
            ++truth.messages;
        };
        std::uint64_t sequence = random();
        send(sequence++); // the first and the last message arrive
        for (int step = 0; step < 300; ++step) {
            switch (random() % 8) {
            case 0: { // lost
                const std::uint64_t count = 1 + random() % 3;
                sequence += count;
                truth.lost += count;
                break;
            }
            case 1: // duplicate
                send(sequence);
                send(sequence++);
                ++truth.duplicates;
                break;
            case 2: // swap two
                send(sequence + 1);
                send(sequence);
                sequence += 2;
                ++truth.reordered;
                break;
            case 3: // damage the beginning: the message does not count as received
                send(sequence++, true);
                ++truth.corrupt;
                ++truth.lost;
                break;
            default:
                send(sequence++);
            }
        }
        send(sequence);
        ASSERT_EQ(checker.total(), truth) << "seed " << seed;
    }
}

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
    // One sixth of the values lies beyond one standard deviation on each side and is clamped to the
    // bound.
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

} // namespace apps::pattern_test
