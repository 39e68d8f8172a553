// SPDX-License-Identifier: Apache-2.0
#include "netio/session/window_pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

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

TEST(WindowPace, TwiceAsManyIsNotOneMoreBecauseTheLimitIs) {
    Waiting side{8, 17};
    side.round(20ms);
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

class AlwaysWaiting {
  public:
    explicit AlwaysWaiting(std::uint32_t seed) : state_{seed} {}

    // What the pace wanted at least and at most.
    std::pair<std::uint32_t, std::uint32_t> extremes() {
        std::pair<std::uint32_t, std::uint32_t> found{least, least};
        for (int i = 0; i < 2000; ++i) {
            const std::uint32_t wanted = step();
            found = {std::min(found.first, wanted), std::max(found.second, wanted)};
        }
        return found;
    }

    static constexpr std::uint32_t least = 8;
    std::uint32_t most() const noexcept { return most_; }

  private:
    std::uint32_t next(std::uint32_t below) {
        state_ = state_ * 1'664'525U + 1'013'904'223U;
        return (state_ >> 16U) % below;
    }
    std::uint32_t step() {
        time_ += std::chrono::microseconds{next(30'000)};
        if (next(3) == 0) pace_.on_granted(granted_ += next(5), time_);
        pace_.on_arrived(true, time_, TimePoint{} + time_);
        const std::uint32_t wanted = pace_.wanted();
        if (wanted != count_ && next(4) == 0) {
            if (wanted > count_) granted_ += wanted - count_;
            pace_.on_changed(count_ = wanted);
        }
        return wanted;
    }

    std::uint32_t state_; // of what is drawn
    std::uint32_t most_ = least + next(100);
    WindowPace pace_{least, most_};
    std::uint64_t granted_ = least;
    Duration time_{};
    std::uint32_t count_ = least;
};

// Whatever the peer says, and whenever: this side's limit holds.
TEST(WindowPace, APeerThatAlwaysSaysThatItWaitedGetsTheLimitAndNoMore) {
    std::size_t reached = 0;
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        const auto peer = std::make_unique<AlwaysWaiting>(seed);
        const auto [fewest, most] = peer->extremes();
        ASSERT_EQ(fewest, AlwaysWaiting::least);
        ASSERT_LE(most, peer->most());
        if (most == peer->most()) ++reached;
    }
    EXPECT_GT(reached, 0U);
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
