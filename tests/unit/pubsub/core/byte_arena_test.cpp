// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/byte_arena.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace netio::pubsub {
namespace {

TEST(ByteArena, TakesTheLowestPieceThatIsLargeEnough) {
    ByteArena arena{1024};
    const auto first = arena.take(64, 128);
    const auto second = arena.take(64, 128);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->offset, 0U);
    EXPECT_EQ(second->offset, 128U);
    arena.give_back(*first);
    const auto third = arena.take(256, 256);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->offset, 256U) << "the hole in front is too small";
    EXPECT_EQ(arena.take(64, 128)->offset, 0U);
}

TEST(ByteArena, WhatAPieceDoesNotHoldIsForTheNext) {
    ByteArena arena{256 * 1024};
    for (int i = 0; i < 32; ++i) {
        auto piece = arena.take(64, 256 * 1024);
        ASSERT_TRUE(piece) << "a page of 4 kB must not keep 256 KiB from the others";
        arena.shorten(*piece, 4096);
    }
    EXPECT_EQ(arena.free_bytes(), 128U * 1024U);
    EXPECT_EQ(arena.hole_count(), 1U);
}

TEST(ByteArena, GivesTheLargestPieceWhereNoneIsAsLargeAsWanted) {
    ByteArena arena{512};
    ASSERT_TRUE(arena.take(64, 64));
    const auto middle = arena.take(64, 64);
    ASSERT_TRUE(arena.take(64, 64));
    arena.give_back(*middle);
    const auto largest = arena.take(64, 1024);
    ASSERT_TRUE(largest);
    EXPECT_EQ(largest->size, 320U);
    EXPECT_FALSE(arena.take(128, 128)) << "only the hole of 64 is left";
}

TEST(ByteArena, ThePieceThatIsJustLargeEnoughIsGivenAndOfTwoSuchTheLower) {
    ByteArena arena{256};
    std::array<ByteArena::Piece, 4> pieces;
    for (ByteArena::Piece& piece : pieces)
        piece = arena.take(64, 64).value();
    arena.give_back(pieces[0]);
    arena.give_back(pieces[2]);
    for (const std::size_t lowest : {pieces[0].offset, pieces[2].offset}) {
        const auto piece = arena.take(64, 1024);
        ASSERT_TRUE(piece);
        EXPECT_EQ(piece->offset, lowest);
        EXPECT_EQ(piece->size, 64U);
    }
    EXPECT_FALSE(arena.take(1, 1));
}

TEST(ByteArena, NothingIsNoHole) {
    ByteArena small{ByteArena::grain - 1};
    EXPECT_EQ(small.free_bytes(), 0U);
    EXPECT_EQ(small.hole_count(), 0U);
    EXPECT_FALSE(small.take(1, 1));
    ByteArena used{64};
    ASSERT_TRUE(used.take(64, 64));
    used.give_back({});
    EXPECT_EQ(used.hole_count(), 0U);
}

TEST(ByteArena, WhoNeedsMoreThanHeWantsGetsWhatHeNeeds) {
    ByteArena arena{1024};
    EXPECT_EQ(arena.take(100, 10)->size, 128U);
    EXPECT_EQ(arena.take(1, 1)->offset, 128U);
}

TEST(ByteArena, NeverGivesAByteTwiceAndForgetsNone) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random{seed};
        constexpr std::size_t grains = 64;
        ByteArena arena{grains * ByteArena::grain};
        std::vector<ByteArena::Piece> pieces;
        std::vector<bool> used(grains, false);
        std::size_t free = grains;
        const auto mark = [&](std::size_t offset, std::size_t size, bool taken) {
            for (std::size_t i = 0; i < size / ByteArena::grain; ++i) {
                ASSERT_NE(used[offset / ByteArena::grain + i], taken) << "seed " << seed;
                used[offset / ByteArena::grain + i] = taken;
            }
            free += taken ? 0 - size / ByteArena::grain : size / ByteArena::grain;
        };
        for (int step = 0; step < 200; ++step) {
            const std::size_t which = pieces.empty() ? 0 : random() % pieces.size();
            if (random() % 2 == 0) {
                const std::size_t least = 1 + random() % 400;
                const auto piece = arena.take(least, least + random() % 400);
                if (!piece) continue;
                ASSERT_GE(piece->size, least);
                mark(piece->offset, piece->size, true);
                pieces.push_back(*piece);
            } else if (!pieces.empty() && random() % 2 == 0) {
                const ByteArena::Piece before = pieces[which];
                arena.shorten(pieces[which], random() % 300);
                mark(before.offset + pieces[which].size, before.size - pieces[which].size, false);
            } else if (!pieces.empty()) {
                arena.give_back(pieces[which]);
                mark(pieces[which].offset, pieces[which].size, false);
                pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(which));
            }
            ASSERT_EQ(arena.free_bytes(), free * ByteArena::grain);
        }
        for (const ByteArena::Piece& piece : pieces)
            arena.give_back(piece);
        EXPECT_EQ(arena.hole_count(), 1U) << "seed " << seed;
    }
}

TEST(ByteArena, ExtendsAPieceOnlyIntoTheHoleRightBehindIt) {
    ByteArena arena{512};
    auto piece = arena.take(64, 64);
    const auto next = arena.take(64, 64);
    EXPECT_FALSE(arena.extend(*piece, 128)) << "the next piece begins there";
    EXPECT_EQ(piece->size, 64U);
    arena.give_back(*next);
    EXPECT_FALSE(arena.extend(*piece, 576)) << "there is too little";
    EXPECT_TRUE(arena.extend(*piece, 128));
    EXPECT_EQ(piece->size, 128U);
    EXPECT_EQ(arena.free_bytes(), 384U);
    EXPECT_EQ(arena.take(64, 64)->offset, 128U);
    EXPECT_TRUE(arena.extend(*piece, 100)) << "it is as large already";
    EXPECT_EQ(piece->size, 128U);
}

} // namespace
} // namespace netio::pubsub
