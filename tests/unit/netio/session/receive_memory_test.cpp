// SPDX-License-Identifier: Apache-2.0
#include "netio/session/receive_memory.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <stdexcept>

namespace netio {
namespace {

class Device final : public MemoryDomain {
  public:
    std::unique_ptr<Registration> register_memory(std::span<std::byte>, Access) override {
        if (refuses) throw std::runtime_error{"no more may be locked"};
        struct Nothing final : Registration {
            void* descriptor() const noexcept override { return nullptr; }
            std::uint64_t key() const noexcept override { return 0; }
            std::uint64_t base() const noexcept override { return 0; }
        };
        return std::make_unique<Nothing>();
    }
    bool refuses = false;
};

TEST(ReceiveMemory, EachReceiveHasItsOwnPlace) {
    Device device;
    ByteBudget budget{1 << 20};
    ReceiveMemory memory{300, 4, budget};
    ASSERT_TRUE(memory.add(4, device));
    ASSERT_TRUE(memory.add(3, device));
    EXPECT_EQ(memory.count(), 11U);
    std::set<std::byte*> places;
    for (std::uint32_t i = 0; i < memory.count(); ++i) {
        const Slice slice = memory.slice(i);
        EXPECT_EQ(slice.size, 300U);
        EXPECT_TRUE(slice.buffer->contains(slice.data, slice.size));
        for (std::byte* place : places)
            EXPECT_GE(std::max(place, slice.data) - std::min(place, slice.data), 300);
        places.insert(slice.data);
    }
}

TEST(ReceiveMemory, WhatIsAddedComesOutOfTheBudgetAndGoesBack) {
    Device device;
    ByteBudget budget{10 * 300};
    {
        ReceiveMemory one{300, 4, budget};
        ReceiveMemory other{300, 4, budget};
        EXPECT_EQ(budget.used(), 0U) << "what it begins with is its own";
        EXPECT_TRUE(one.add(8, device));
        EXPECT_FALSE(other.add(3, device));
        EXPECT_TRUE(other.add(2, device));
        EXPECT_EQ(budget.used(), 3000U);
        EXPECT_EQ(other.count(), 6U);
    }
    EXPECT_EQ(budget.used(), 0U);
}

TEST(ReceiveMemory, WhatCannotBeRegisteredIsNotAdded) {
    Device device;
    device.refuses = true;
    ByteBudget budget{1 << 20};
    ReceiveMemory memory{300, 4, budget};
    EXPECT_FALSE(memory.add(4, device));
    EXPECT_EQ(memory.count(), 4U);
    EXPECT_EQ(budget.used(), 0U);
}

TEST(ReceiveMemory, TheLastPieceGoesWhenNoneOfItsReceivesIsUsed) {
    Device device;
    ByteBudget budget{1 << 20};
    ReceiveMemory memory{300, 4, budget};
    memory.begin_to_drop();
    EXPECT_FALSE(memory.is_dropping()) << "what it began with stays";
    ASSERT_TRUE(memory.add(4, device));
    ASSERT_TRUE(memory.add(2, device));
    EXPECT_FALSE(memory.is_dropped(9));
    memory.begin_to_drop();
    EXPECT_FALSE(memory.is_dropped(7));
    EXPECT_TRUE(memory.is_dropped(8));
    EXPECT_FALSE(memory.drop());
    EXPECT_EQ(memory.count(), 10U);
    EXPECT_TRUE(memory.drop());
    EXPECT_EQ(memory.count(), 8U);
    EXPECT_FALSE(memory.is_dropping());
    EXPECT_EQ(budget.used(), 4U * 300U);
}

} // namespace
} // namespace netio
