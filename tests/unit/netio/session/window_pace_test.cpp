// SPDX-License-Identifier: Apache-2.0
#include "netio/session/window_pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace netio {
namespace {

using namespace std::chrono_literals;

// A side whose peer always has something to send: it waits until a grant reaches it, and what the
// grant lets it send comes a round trip later.
struct Waiting {
    Waiting(std::uint32_t least, std::uint32_t most) : pace{least, most}, granted{least} {}

    void arrive(bool waited) { pace.on_arrived(waited, rested, TimePoint{} + now); }
    // All that was granted comes but the last, which a service may not use; then so much is granted
    // and answered after `trip`, of which this side has rested `idle`.
    void round(Duration trip, Duration idle, bool waits = true) {
        while (arrived + 1 < granted) {
            arrive(false);
            ++arrived;
        }
        granted += 4;
        pace.on_granted(granted, rested);
        now += trip;
        rested += idle;
        arrive(waits);
        ++arrived;
    }
    void round(Duration trip) { round(trip, trip); }
    void change() {
        granted += pace.wanted() - count;
        count = pace.wanted();
        pace.on_changed(count);
        pace.on_granted(granted, rested);
    }

    WindowPace pace;
    std::uint64_t granted;
    std::uint32_t count = static_cast<std::uint32_t>(granted);
    std::uint64_t arrived = 0;
    Duration now{};
    Duration rested{};
};

TEST(WindowPace, BeginsWithWhatThereIs) {
    EXPECT_EQ(WindowPace(8, 64).wanted(), 8U);
    EXPECT_EQ(WindowPace(8, 4).wanted(), 8U);
}

TEST(WindowPace, TwoLongWaitsDoubleIt) {
    Waiting side{8, 64};
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 8U) << "one may be the machine's doing";
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

TEST(WindowPace, GrowsNoFurtherThanItsLimit) {
    for (const std::uint32_t most : {8U, 9U, 15U, 16U, 17U, 63U, 64U}) {
        Waiting side{8, most};
        for (int i = 0; i < 100; ++i) {
            side.round(20ms);
            ASSERT_LE(side.pace.wanted(), most);
            if (side.pace.wanted() != side.count) side.change();
        }
        EXPECT_EQ(side.count, most);
    }
}

TEST(WindowPace, AMillisecondIsShort) {
    Waiting side{8, 64};
    for (int i = 0; i < 100; ++i)
        side.round(WindowPace::short_trip);
    EXPECT_EQ(side.pace.wanted(), 8U);
    side.round(WindowPace::short_trip + 1ns);
    side.round(WindowPace::short_trip + 1ns);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

TEST(WindowPace, AShortWaitBetweenTwoLongOnesBeginsAnew) {
    Waiting side{8, 64};
    for (int i = 0; i < 100; ++i) {
        side.round(20ms);
        side.round(100us);
    }
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(WindowPace, WhoDidNotWaitHasOnlyNothingToSay) {
    Waiting side{8, 64};
    for (int i = 0; i < 100; ++i)
        side.round(20ms, 20ms, false);
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(WindowPace, WhileThisSideHasSomethingToDoTheWayIsNotWhatThePeerWaitsFor) {
    Waiting side{8, 64};
    for (int i = 0; i < 100; ++i)
        side.round(20ms, 1ms);
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(WindowPace, AWaitForALaterCreditIsNotOneForThis) {
    WindowPace pace{8, 64};
    for (int i = 0; i < 2; ++i) {
        pace.on_granted(12 + 8 * static_cast<std::uint64_t>(i), 0ms);
        const int begin = i == 0 ? 0 : 10;
        for (int number = begin; number < 9 + 8 * i; ++number)
            pace.on_arrived(false, 20ms, TimePoint{});
        pace.on_arrived(true, 20ms, TimePoint{});
    }
    EXPECT_EQ(pace.wanted(), 8U);
}

// Whatever the peer says, and whenever: this side's limit holds.
TEST(WindowPace, APeerThatAlwaysSaysThatItWaitedGetsTheLimitAndNoMore) {
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        std::uint32_t state = seed;
        const auto next = [&state](std::uint32_t below) {
            state = state * 1'664'525U + 1'013'904'223U;
            return (state >> 16U) % below;
        };
        const std::uint32_t most = 8 + next(100);
        WindowPace pace{8, most};
        std::uint64_t granted = 8;
        Duration time{};
        std::uint32_t count = 8;
        for (int i = 0; i < 2000; ++i) {
            time += std::chrono::microseconds{next(30'000)};
            if (next(3) == 0) pace.on_granted(granted += next(5), time);
            pace.on_arrived(true, time, TimePoint{} + time);
            ASSERT_GE(pace.wanted(), 8U);
            ASSERT_LE(pace.wanted(), most);
            if (pace.wanted() != count && next(4) == 0) {
                granted += pace.wanted() > count ? pace.wanted() - count : 0;
                pace.on_changed(count = pace.wanted());
            }
        }
    }
}

TEST(WindowPace, WhatCannotBeIsAskedForAgainAfterTwoMoreWaits) {
    Waiting side{8, 64};
    side.round(20ms);
    side.round(20ms);
    ASSERT_EQ(side.pace.wanted(), 16U);
    side.pace.on_changed(8);
    EXPECT_EQ(side.pace.wanted(), 8U);
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 8U);
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

struct Grown : Waiting {
    explicit Grown(std::uint32_t to) : Waiting{8, to} {
        while (count < to) {
            round(20ms);
            if (pace.wanted() != count) change();
        }
        now += 3 * WindowPace::period; // whatever has begun before
        arrive(false);
    }
    // So many messages come in a period, and one behind it.
    void messages(std::uint64_t in_a_period) {
        const Duration each = WindowPace::period / static_cast<std::int64_t>(in_a_period);
        for (std::uint64_t i = 0; i < in_a_period; ++i) {
            now += each;
            arrive(false);
        }
        now += each;
        arrive(false);
    }
};

TEST(WindowPace, AWindowThatIsHardlyUsedShrinksByHalfEachPeriodToWhereItBegan) {
    Grown side{64};
    for (const std::uint32_t expected : {32U, 16U, 8U, 8U}) {
        side.messages(2);
        EXPECT_EQ(side.pace.wanted(), expected);
        side.change();
    }
}

TEST(WindowPace, HalfOfItMayBeLessThanWhatItBeganWith) {
    Grown side{10};
    side.messages(2);
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(WindowPace, OneThatIsUsedToAQuarterStays) {
    // A quarter of 64 in 20 ms, for 10 s.
    Grown used{64};
    used.messages(16 * 500 + 100);
    EXPECT_EQ(used.pace.wanted(), 64U);
    Grown unused{64};
    unused.messages(16 * 500 - 100);
    EXPECT_EQ(unused.pace.wanted(), 32U);
}

TEST(WindowPace, OneThatThePeerHasWaitedForInThePeriodStays) {
    Grown side{64};
    side.arrive(true);
    side.messages(2);
    EXPECT_EQ(side.pace.wanted(), 64U);
    side.messages(2);
    EXPECT_EQ(side.pace.wanted(), 32U) << "and goes in the next";
}

} // namespace
} // namespace netio
