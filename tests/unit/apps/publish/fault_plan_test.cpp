// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/fault_plan.hpp"

#include "apps/common/pattern.hpp"
#include "apps/publish/sources.hpp"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace apps {
namespace {

using netio::pubsub::Fid;

std::vector<std::uint64_t> sequence(const FaultConfig& config, std::size_t count) {
    FaultPlan plan{config, 5};
    std::vector<std::uint64_t> numbers;
    for (; numbers.size() < count; plan.accept())
        numbers.push_back(plan.step().sequence);
    return numbers;
}

TEST(FaultPlan, WithoutFaultsNumbersFollowEachOther) {
    EXPECT_THAT(sequence({}, 5), testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(FaultPlan, EachFaultIsWhatItsNameSays) {
    EXPECT_THAT(sequence({.missing = 1}, 4), testing::ElementsAre(0, 2, 4, 6));
    EXPECT_THAT(sequence({.duplicated = 1}, 5), testing::ElementsAre(0, 1, 1, 2, 2));
    EXPECT_THAT(sequence({.late = 1}, 5), testing::ElementsAre(0, 2, 1, 4, 3));
    FaultPlan cut{{.truncated = 1}, 5};
    cut.accept();
    EXPECT_EQ(cut.step().damage, FaultPlan::Step::Damage::truncated);
    FaultPlan wrong{{.corrupted = 1}, 5};
    wrong.accept();
    EXPECT_EQ(wrong.step().damage, FaultPlan::Step::Damage::corrupted);
}

TEST(FaultPlan, WhatIsNotAcceptedIsNotCountedAndComesAgain) {
    FaultPlan plan{{.missing = 1}, 5};
    plan.accept();
    EXPECT_EQ(plan.step().sequence, 2U);
    EXPECT_EQ(plan.step().sequence, 2U);
    EXPECT_EQ(plan.counts(), FaultCounts{});
    plan.accept();
    EXPECT_EQ(plan.counts(), FaultCounts{.missing = 1});
}

TEST(FaultPlan, ALateMessageThatHasNotComeIsMissing) {
    FaultPlan plan{{.late = 1}, 5};
    plan.accept(); // 0
    EXPECT_EQ(plan.counts(), FaultCounts{});
    plan.accept(); // 2
    EXPECT_EQ(plan.counts(), FaultCounts{.missing = 1});
    plan.accept(); // 1
    EXPECT_EQ(plan.counts(), FaultCounts{.late = 1});
}

TEST(FaultPlan, FaultsAreAsManyAsWereAskedFor) {
    FaultPlan plan{{.missing = 0.05, .duplicated = 0.1, .corrupted = 0.02, .late = 0.04}, 5};
    for (int i = 0; i < 100'000; ++i)
        plan.accept();
    const FaultCounts counts = plan.counts();
    EXPECT_NEAR(static_cast<double>(counts.missing), 4400, 300);
    EXPECT_NEAR(static_cast<double>(counts.duplicated), 8800, 400);
    EXPECT_NEAR(static_cast<double>(counts.late), 3500, 300);
    EXPECT_NEAR(static_cast<double>(counts.corrupted), 1750, 200);
    EXPECT_EQ(counts.truncated, 0U);
}

// What the publisher says, and what the checker finds, whenever it ends and however often a message
// is refused.
TEST(FaultPlan, ACheckerFindsExactlyWhatWasDone) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random{seed};
        const bool timed = seed % 2 == 1;
        const std::size_t smallest = (timed ? timed_pattern_bytes : whole_pattern_bytes) + 1;
        const auto source = make_faulty_source(
            Fid{seed}, timed,
            {.missing = 0.2, .duplicated = 0.2, .corrupted = 0.1, .late = 0.2, .truncated = 0.1},
            seed);
        PatternChecker checker;
        std::vector<std::byte> memory(200);
        std::uint64_t messages = 1 + random() % 300;
        for (std::uint64_t i = 0; i < messages;) {
            const std::size_t size = smallest + random() % (memory.size() - smallest);
            const auto result = source->fill(std::span{memory}.first(size));
            if (random() % 4 == 0) continue; // refused
            const std::span<std::byte> message = std::span{memory}.first(result.bytes);
            if (timed) stamp_pattern(message, random());
            checker.check(Fid{seed}, message);
            source->accept();
            ++i;
        }
        const FaultCounts faults = source->faults();
        ASSERT_EQ(checker.total(), (PatternCounts{.messages = messages,
                                                  .lost = faults.missing,
                                                  .reordered = faults.late,
                                                  .duplicates = faults.duplicated,
                                                  .corrupt = faults.corrupted,
                                                  .truncated = faults.truncated}))
            << "seed " << seed;
    }
}

} // namespace
} // namespace apps
