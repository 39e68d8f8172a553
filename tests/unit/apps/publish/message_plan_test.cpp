// SPDX-License-Identifier: Apache-2.0
#include "apps/common/pattern.hpp"
#include "apps/publish/message_feed.hpp"
#include "apps/publish/message_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace apps::message_plan_test {
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

TEST(FaultPlan, EachFaultHasTheEffectOfItsName) {
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

TEST(FaultPlan, ARefusedFaultIsNotCountedAndIsRepeated) {
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

// The publisher's report and the checker's result agree, whenever it ends and however often a
// message is refused.
TEST(FaultPlan, ACheckerFindsExactlyTheMadeFaults) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random{seed};
        const std::size_t smallest = whole_pattern_bytes + 1;
        const auto source = make_faulty_source(
            Fid{seed},
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

using namespace std::chrono_literals;

constexpr netio::TimePoint start{1h};

// The times of the next `count` triggers, each taken when it is due.
std::vector<netio::Duration> times(TriggerClock& clock, std::size_t count) {
    std::vector<netio::Duration> all;
    while (all.size() < count) {
        all.push_back(clock.next() - start);
        EXPECT_FALSE(clock.take(clock.next() - 1ns));
        EXPECT_TRUE(clock.take(clock.next()));
    }
    return all;
}

TEST(TriggerClock, TheFirstBurstIsDueAtOnceAndNothingBeforeTheStart) {
    TriggerClock clock{{.per_second = 10, .burst = 3}, 1, start};
    EXPECT_FALSE(clock.take(start - 1ns));
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(clock.take(start));
    EXPECT_FALSE(clock.take(start));
    EXPECT_NEAR(std::chrono::duration<double>(clock.next() - start).count(), 0.3, 1e-6);
}

TEST(TriggerClock, KeepsTheRateInTheLongRunHoweverItIsAsked) {
    for (const bool poisson : {false, true}) {
        TriggerClock clock{{.per_second = 12345.6, .poisson = poisson}, 7, start};
        for (netio::TimePoint now = start; now < start + 100s; now += 7777us) {
            while (clock.take(now)) {
            }
        }
        EXPECT_NEAR(static_cast<double>(clock.taken()), 1234560, poisson ? 5000 : 100);
    }
}

// For independent events, a fraction 1/e of the intervals is longer than the mean, and e^-3 is
// longer than three times the mean.
TEST(TriggerClock, DistancesOfRandomOnesAreThoseOfPoisson) {
    TriggerClock clock{{.per_second = 1000, .poisson = true}, 3, start};
    const auto all = times(clock, 20'000);
    int longer = 0;
    int far_longer = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
        longer += all[i] - all[i - 1] > 1ms ? 1 : 0;
        far_longer += all[i] - all[i - 1] > 3ms ? 1 : 0;
    }
    EXPECT_NEAR(longer / 20'000.0, 0.368, 0.015);
    EXPECT_NEAR(far_longer / 20'000.0, 0.0498, 0.006);
}

TEST(TriggerClock, TheSameSeedGivesTheSameTimes) {
    const RateConfig rate{.per_second = 1000, .burst = 2, .poisson = true};
    TriggerClock one{rate, 3, start};
    TriggerClock same{rate, 3, start};
    TriggerClock other{rate, 4, start};
    const auto expected = times(one, 100);
    EXPECT_EQ(times(same, 100), expected);
    EXPECT_NE(times(other, 100), expected);
}

TEST(TriggerClock, ABurstOfRandomOnesIsDueAtOnce) {
    TriggerClock clock{{.per_second = 1000, .burst = 4, .poisson = true}, 3, start};
    const auto all = times(clock, 400);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i], all[i - i % 4]) << i;
        if (i % 4 == 0 && i > 0) {
            EXPECT_GT(all[i], all[i - 1]) << i;
        }
    }
}

// Bunches every 25 ns: 72 bunches and then 8 empty places.
TEST(TriggerClock, TrainsAreFollowedByGaps) {
    TriggerClock clock{{.per_second = 40e6, .train = 1800ns, .gap = 200ns}, 1, start};
    const auto all = times(clock, 72 * 5);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto train = static_cast<netio::Duration::rep>(i / 72);
        const auto bunch = static_cast<netio::Duration::rep>(i % 72);
        ASSERT_NEAR(static_cast<double>(all[i].count()),
                    static_cast<double>(train * 2000 + bunch * 25), 2.0)
            << i;
    }
}

TEST(TriggerClock, RandomOnesKeepOutOfTheGapsToo) {
    TriggerClock clock{{.per_second = 1e6, .poisson = true, .train = 30us, .gap = 70us}, 1, start};
    for (const netio::Duration time : times(clock, 10'000))
        ASSERT_LT(time % 100us, 30us);
    EXPECT_NEAR(std::chrono::duration<double>(clock.next() - start).count(), 0.0333, 0.002);
}

TEST(TriggerClock, WhatIsDueAfterTheEndOfTheClockIsNeverDue) {
    for (const double rate : {1e-9, 1e-10, 1e-12, 1e-300}) {
        TriggerClock clock{{.per_second = rate}, 1, start};
        ASSERT_TRUE(clock.take(start));
        EXPECT_EQ(clock.next(), netio::TimePoint::max()) << rate;
        EXPECT_FALSE(clock.take(start + 24h * 365)) << rate;
    }
    TriggerClock gaps{{.per_second = 1e9, .train = 1ns, .gap = 3600s}, 1, start};
    while (gaps.next() != netio::TimePoint::max())
        ASSERT_TRUE(gaps.take(gaps.next()));
    TriggerClock yearly{{.per_second = 1.0 / (24 * 365 * 3600)}, 1, start};
    ASSERT_TRUE(yearly.take(start));
    EXPECT_EQ(std::chrono::round<std::chrono::hours>(yearly.next() - start), 24h * 365);
}

TEST(TriggerClock, MakesUpForASecondAndPutsTheRestOff) {
    TriggerClock clock{{.per_second = 100}, 1, start};
    int due = 0;
    while (clock.take(start + 1h))
        ++due;
    EXPECT_NEAR(due, 100, 1);
    EXPECT_EQ(clock.put_off(), 1h - 1s);
    for (due = 0; clock.take(start + 1h + 500ms);)
        ++due;
    EXPECT_EQ(due, 50) << "the lost hour shifts the schedule";
    EXPECT_EQ(clock.put_off(), 1h - 1s);
}

} // namespace

} // namespace apps::message_plan_test
