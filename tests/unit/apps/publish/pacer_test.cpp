// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/pacer.hpp"

#include <gtest/gtest.h>

namespace apps {
namespace {

using namespace std::chrono_literals;

constexpr netio::TimePoint start{1h};

TEST(Pacer, TheFirstBurstIsDueAtOnceAndNothingBeforeTheStart) {
    Pacer pacer{10, 3, start};
    EXPECT_EQ(pacer.due(start - 1ns), 0U);
    EXPECT_EQ(pacer.due(start), 3U);
    pacer.sent(3);
    EXPECT_EQ(pacer.due(start), 0U);
}

TEST(Pacer, NextIsTheFirstTimeWhenSomethingIsDue) {
    for (const double rate : {1.0, 3.0, 7.3, 1000.0, 99999.0}) {
        for (const std::uint64_t burst : {1U, 5U}) {
            Pacer pacer{rate, burst, start};
            netio::TimePoint now = start;
            for (int i = 0; i < 1000; ++i) {
                ASSERT_EQ(pacer.due(now), burst) << rate << " " << i;
                pacer.sent(burst);
                ASSERT_EQ(pacer.due(now), 0U);
                const netio::TimePoint next = pacer.next();
                ASSERT_GT(next, now);
                ASSERT_EQ(pacer.due(next - 1us), 0U) << rate << " " << i;
                now = next;
            }
        }
    }
}

TEST(Pacer, KeepsTheRateInTheLongRunHoweverItIsAsked) {
    Pacer pacer{12345.6, 1, start};
    std::uint64_t sent = 0;
    for (netio::TimePoint now = start; now < start + 100s; now += 7777us) {
        const std::uint64_t due = pacer.due(now);
        pacer.sent(due);
        sent += due;
    }
    EXPECT_NEAR(static_cast<double>(sent), 1234560, 100);
}

TEST(Pacer, WhatIsDueAfterTheEndOfTheClockIsNeverDue) {
    for (const double rate : {1e-9, 1e-10, 1e-12, 1e-300}) {
        Pacer pacer{rate, 1, start};
        ASSERT_EQ(pacer.due(start), 1U);
        pacer.sent(1);
        EXPECT_EQ(pacer.next(), netio::TimePoint::max()) << rate;
        EXPECT_EQ(pacer.due(start + std::chrono::hours{24 * 365}), 0U) << rate;
    }
    Pacer yearly{1.0 / (24 * 365 * 3600), 1, start};
    yearly.sent(1);
    EXPECT_EQ(std::chrono::round<std::chrono::hours>(yearly.next() - start), 24h * 365);
}

TEST(Pacer, DoesNotMakeUpForMoreThanASecond) {
    Pacer pacer{100, 1, start};
    EXPECT_EQ(pacer.due(start + 1h), 100U);
    pacer.sent(100);
    EXPECT_EQ(pacer.due(start + 1h), 0U);
    EXPECT_EQ(pacer.due(start + 1h + 1s), 100U);
}

} // namespace
} // namespace apps
