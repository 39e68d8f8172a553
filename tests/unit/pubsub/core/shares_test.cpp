// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/shares.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace netio::pubsub {
namespace {

constexpr std::size_t pool = 32 << 20;
constexpr std::size_t share = 1 << 20;

TEST(Shares, AsLongAsHalfIsFreeEverybodyMayHoldWhatTheOptionsSay) {
    Shares shares{pool};
    shares.set_subscribers(50);
    shares.use(pool / 2);
    EXPECT_FALSE(shares.is_short());
    EXPECT_EQ(shares.allowance(share), share);
    EXPECT_EQ(shares.post_limit(false), SIZE_MAX);
    shares.use(64);
    EXPECT_TRUE(shares.is_short());
    EXPECT_LT(shares.allowance(share), share);
    EXPECT_LT(shares.post_limit(false), pool / 50);
    shares.give_back(64);
    EXPECT_EQ(shares.allowance(share), share);
}

TEST(Shares, TheLeastThatWasFreeBeginsAnewWithWhatIsFreeNow) {
    Shares shares{100};
    shares.use(70);
    shares.give_back(50);
    EXPECT_EQ(shares.take_least_free(), 30U);
    EXPECT_EQ(shares.take_least_free(), 80U);
    shares.use(5);
    EXPECT_EQ(shares.take_least_free(), 75U);
}

TEST(Shares, WhoHasStalledGetsOnePostAtATime) {
    const Shares shares{pool};
    EXPECT_EQ(shares.post_limit(true), 0U);
}

TEST(Shares, AreShortOfWhatIsNeededNow) {
    Shares shares{100};
    shares.use(10);
    EXPECT_FALSE(shares.is_short(90));
    EXPECT_TRUE(shares.is_short(91));
}

TEST(Shares, HaveRecoveredWhenThreeQuartersAreFree) {
    Shares shares{100};
    shares.use(26);
    EXPECT_TRUE(shares.is_recovering());
    shares.give_back(1);
    EXPECT_FALSE(shares.is_recovering());
}

TEST(Shares, PostsHoldTooMuchAtHalfOfThePool) {
    const Shares shares{100};
    EXPECT_FALSE(shares.posts_hold_too_much(49, 0));
    EXPECT_TRUE(shares.posts_hold_too_much(50, 0));
    EXPECT_FALSE(Shares{1}.posts_hold_too_much(0, 0));
    EXPECT_TRUE(Shares{1}.posts_hold_too_much(1, 0));
}

TEST(Shares, PostsHoldTooMuchWhereAMessageWouldFindNoPlaceWithoutTheOthers) {
    const Shares shares{100};
    EXPECT_FALSE(shares.posts_hold_too_much(20, 80)) << "the others will return theirs";
    EXPECT_TRUE(shares.posts_hold_too_much(20, 81));
    EXPECT_FALSE(shares.posts_hold_too_much(0, 101));
    EXPECT_FALSE(shares.posts_hold_too_much(20, 0));
}

TEST(Shares, HalfOfThePoolDoesNotWaitForThoseWhoAreWaitedFor) {
    EXPECT_FALSE(Shares{1}.is_plenty(1, 1));
    EXPECT_TRUE(Shares{2}.is_plenty(1, 2));
    EXPECT_FALSE(Shares{2}.is_plenty(1, 1));
    EXPECT_TRUE(Shares{3}.is_plenty(1, 3));
    EXPECT_FALSE(Shares{3}.is_plenty(1, 2)) << "more than half would wait";
    Shares shares{400};
    shares.set_subscribers(6);
    EXPECT_EQ(shares.piece(100, 200), 100U);
    EXPECT_EQ(shares.piece(100, 199), 19U);
    EXPECT_EQ(shares.piece(10, 199), 10U);
    EXPECT_EQ(shares.waiting_limit(200), 10U);
    EXPECT_EQ(shares.waiting_limit(109), 0U);
    EXPECT_EQ(shares.waiting_limit(50), 0U);
}

TEST(Shares, WhatTheLargestMessageTakesDoesNotWaitEither) {
    Shares shares{160, 60};
    shares.set_subscribers(1);
    EXPECT_EQ(shares.waiting_limit(64), 0U);
    EXPECT_EQ(shares.waiting_limit(65), 1U);
    const Shares large{160, 160};
    EXPECT_EQ(large.waiting_limit(83), 0U) << "half of the pool at most";
    EXPECT_EQ(large.waiting_limit(84), 1U);
    const Shares small{160, 1};
    EXPECT_EQ(small.waiting_limit(43), 0U) << "a quarter at least";
    EXPECT_EQ(small.waiting_limit(44), 1U);
}

// Each takes what it may have wait, in any order and as often as it likes, and never takes it.
TEST(Shares, AQuarterDoesNotWaitHoweverManyAreWaitedFor) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        std::mt19937 random{seed};
        Shares shares{pool};
        const std::size_t subscribers = 2 + random() % 200;
        shares.set_subscribers(subscribers);
        std::vector<std::size_t> held(subscribers - 1);
        for (int step = 0; step < 20000; ++step) {
            std::size_t& one = held[random() % held.size()];
            const std::size_t message = 1 + random() % (random() % 4 == 0 ? 4 << 20 : 4096);
            if (!shares.is_plenty(message, shares.free()) &&
                one + message > shares.waiting_limit(shares.free()))
                continue;
            one += message;
            shares.use(message);
            ASSERT_GE(shares.free(), pool / 4) << "seed " << seed << ", " << subscribers;
        }
    }
}

// Subscribers stop in any order, take what they are allowed before each notices, and never give
// anything back. Whoever goes on finds memory all the same.
TEST(Shares, HoweverManyStopSomethingIsLeftForThoseWhoGoOn) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random{seed};
        Shares shares{pool};
        const std::size_t subscribers = 2 + random() % 60;
        shares.set_subscribers(subscribers);
        std::vector<std::size_t> held(subscribers - 1); // the last one goes on
        for (int step = 0; step < 20000; ++step) {
            std::size_t& one = held[random() % held.size()];
            if (one >= std::max<std::size_t>(1, shares.allowance(share))) continue;
            const std::size_t piece = shares.piece(1 + random() % (256 << 10), shares.free());
            one += piece;
            shares.use(piece);
            ASSERT_GE(shares.free(), pool / 8) << "seed " << seed << ", " << subscribers;
        }
        EXPECT_GT(shares.allowance(share), std::size_t{16} << 10) << "seed " << seed;
    }
}

} // namespace
} // namespace netio::pubsub
