// SPDX-License-Identifier: Apache-2.0
#include "netio/session/slot_memory.hpp"

#include <gtest/gtest.h>

namespace netio {
namespace {

constexpr std::size_t plenty = std::size_t{1} << 30U;
constexpr std::size_t large = 1000 * 1000;

// A peer may say that it takes frames of 4 GiB.
TEST(SlotMemory, GrowsWithWhatIsGatheredAndNotWithWhatThePeerSaysThatItTakes) {
    ByteBudget budget{plenty};
    SlotMemory memory{2, budget};
    for (std::size_t bytes = 1; bytes <= (1U << 20U); bytes += bytes / 2 + 1) {
        const std::size_t size = memory.gather(0, bytes, UINT32_MAX)->size();
        EXPECT_GE(size, bytes);
        EXPECT_LE(size, 2 * bytes + frame_extension_limit);
        memory.release(0);
    }
    EXPECT_LE(memory.held(), 2U << 20U) << "one at a time";
}

TEST(SlotMemory, IsNeverLargerThanThePeerTakes) {
    ByteBudget budget{plenty};
    SlotMemory memory{1, budget};
    static_cast<void>(memory.gather(0, 600, 1000));
    memory.release(0);
    EXPECT_EQ(memory.gather(0, 700, 1000)->size(), 1000U);
}

TEST(SlotMemory, GoesBackWhenItsFrameHasLeftButForALittle) {
    ByteBudget budget{plenty};
    {
        SlotMemory memory{64, budget};
        for (std::uint32_t slot = 0; slot < 64; ++slot)
            ASSERT_NE(memory.gather(slot, large, large), nullptr);
        EXPECT_GE(memory.held(), 64 * large);
        EXPECT_EQ(memory.held(), budget.used());
        for (std::uint32_t slot = 0; slot < 64; ++slot)
            memory.release(slot);
        EXPECT_GE(memory.held(), large) << "for the next one";
        EXPECT_LE(memory.held(), std::size_t{4} << 20U);
        EXPECT_EQ(memory.held(), budget.used());
    }
    EXPECT_EQ(budget.used(), 0U);
}

TEST(SlotMemory, OneSessionTakesHalfOfWhatThereIsAndTheNextHalfOfTheRest) {
    ByteBudget budget{16 * large};
    SlotMemory one{64, budget};
    SlotMemory other{64, budget};
    const auto fill = [](SlotMemory& memory) {
        std::uint32_t count = 0;
        while (memory.gather(count, large, large) != nullptr)
            ++count;
        EXPECT_TRUE(memory.is_short());
        return count;
    };
    EXPECT_EQ(fill(one), 8U);
    EXPECT_EQ(fill(other), 4U);
    one.release(3);
    EXPECT_FALSE(one.is_short());
}

TEST(SlotMemory, OneFrameMayAlwaysBeUnderWayAndNoneIsKeptThen) {
    ByteBudget budget{1000};
    SlotMemory one{4, budget};
    SlotMemory other{4, budget};
    for (SlotMemory* const each : {&one, &other, &one}) {
        ASSERT_NE(each->gather(0, large, large), nullptr);
        EXPECT_EQ(each->gather(1, large, large), nullptr);
        EXPECT_TRUE(each->is_short());
        each->release(0);
        EXPECT_FALSE(each->is_short());
        EXPECT_EQ(budget.used(), 0U);
    }
}

// Control frames of a stream, answers, gaps: nobody sends them twice.
TEST(SlotMemory, ThereIsAlwaysSomeForWhatIsSmall) {
    ByteBudget budget{1000};
    SlotMemory memory{64, budget};
    ASSERT_NE(memory.gather(0, large, large), nullptr);
    for (std::uint32_t slot = 1; slot < 64; ++slot)
        ASSERT_NE(memory.gather(slot, 4096, large), nullptr);
    EXPECT_FALSE(memory.is_short());
}

// What waits for this session's next frames is not what keeps one of them from leaving.
TEST(SlotMemory, WhatIsKeptGivesWayToWhatIsNeeded) {
    ByteBudget budget{8 * large};
    SlotMemory memory{4, budget};
    ASSERT_NE(memory.gather(0, large, large), nullptr);
    ASSERT_NE(memory.gather(1, large, large), nullptr);
    ASSERT_NE(memory.gather(2, large, large), nullptr);
    memory.release(1);
    memory.release(2);
    EXPECT_NE(memory.gather(1, 3 * large, 3 * large), nullptr);
    EXPECT_LE(memory.held(), 4 * large);
}

TEST(SlotMemory, KeepsFourMegabytesForTheNextAndNoMore) {
    constexpr std::size_t most = std::size_t{4} << 20U;
    ByteBudget budget{plenty};
    SlotMemory memory{1, budget};
    ASSERT_NE(memory.gather(0, most, most), nullptr);
    memory.release(0);
    EXPECT_EQ(memory.held(), most);
    ASSERT_NE(memory.gather(0, most + 1, most + 1), nullptr);
    memory.release(0);
    EXPECT_EQ(memory.held(), 0U);
}

TEST(SlotMemory, KeepsNothingWhereHalfOfAllIsUsed) {
    for (const std::size_t more : {0U, 2U}) {
        ByteBudget budget{2 * large + more};
        SlotMemory memory{1, budget};
        ASSERT_NE(memory.gather(0, large, large), nullptr);
        memory.release(0);
        EXPECT_EQ(memory.held(), more == 0 ? 0 : large);
    }
}

TEST(SlotMemory, KeepsSomeHoweverOftenItIsUsed) {
    ByteBudget budget{plenty};
    SlotMemory memory{1, budget};
    for (int frame = 0; frame < 100; ++frame) {
        ASSERT_NE(memory.gather(0, large, large), nullptr);
        memory.release(0);
        ASSERT_EQ(memory.held(), large) << frame;
    }
}

} // namespace
} // namespace netio
