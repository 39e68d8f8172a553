// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/receive_memory.hpp"

#include "netio/memory/keep_pool.hpp"
#include "netio/session/session_options.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace netio::test::receive_memory_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class ReceiveMemoryTest : public testing::Test {
  protected:
    std::vector<std::byte> users = std::vector<std::byte>(10 * 64);
    ReceiveMemory memory{users};
};

TEST_F(ReceiveMemoryTest, GivesPartsUntilItIsExhaustedAndTakesThemBack) {
    auto all = memory.take(10 * 64);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->memory->data() + all->offset, users.data());
    EXPECT_TRUE(all->is_users);
    EXPECT_FALSE(memory.take(1));
    all.reset();
    EXPECT_EQ(memory.free_bytes(), memory.size());
    EXPECT_TRUE(memory.take(10 * 64)) << "in one piece";
}

TEST_F(ReceiveMemoryTest, APartBeginsAtTheBeginningOfACacheLine) {
    const auto first = memory.take(1);
    const auto second = memory.take(65);
    const auto third = memory.take(64);
    EXPECT_EQ(second->offset, 64U);
    EXPECT_EQ(third->offset, 64U + 128U);
    EXPECT_EQ(memory.free_bytes(), 6U * 64U);
}

TEST_F(ReceiveMemoryTest, FreeNeighboursBecomeOnePieceInAnyOrder) {
    std::mt19937 random{1};
    for (int round = 0; round < 200; ++round) {
        std::vector<KeepPool::Buffer> parts;
        while (auto part = memory.take(1 + random() % 128))
            parts.push_back(*std::move(part));
        std::ranges::shuffle(parts, random);
        std::size_t in_use = memory.size() - memory.free_bytes();
        EXPECT_GT(in_use, 4U * 64U);
        while (!parts.empty())
            parts.pop_back();
        ASSERT_EQ(memory.free_bytes(), memory.size());
        ASSERT_TRUE(memory.take(memory.size())) << "round " << round;
    }
}

// With a session's pool: the memory goes back when the last copy is destroyed, wherever that is.
TEST_F(ReceiveMemoryTest, WakesOnceWhenAnotherThreadReturnsAPart) {
    const auto pool = std::make_shared<KeepPool>(64);
    auto loan = pool->lend([&] { return *memory.take(64); }, TimePoint{});
    int woken = 0;
    int forgotten = 0;
    memory.wake_on_return(this, [&] { woken += 100; });
    memory.wake_on_return(this, [&] { ++woken; }); // replaces it
    memory.wake_on_return(&users, [&] { ++forgotten; });
    memory.forget(&users);
    EXPECT_EQ(memory.free_bytes(), 9U * 64U);
    std::jthread{[&] { loan.reset(); }}.join();
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(forgotten, 0);
    EXPECT_EQ(memory.free_bytes(), memory.size());
    std::vector<KeepPool::Buffer> returned;
    pool->take_returned(returned);
    EXPECT_TRUE(returned.empty()) << "other sessions may use it";
    static_cast<void>(memory.take(64));
    EXPECT_EQ(woken, 1);
}

TEST_F(ReceiveMemoryTest, WhatIsKeptOutlivesTheObject) {
    auto own = std::make_unique<ReceiveMemory>(std::span{users}.first(128));
    auto part = own->take(64);
    own.reset();
    EXPECT_EQ(part->memory->data(), users.data());
    part.reset();
}

TEST(ReceiveMemoryOption, TooLittleIsRefusedWithBothNumbers) {
    std::vector<std::byte> users(10'000);
    SessionOptions options{.receive_buffer_bytes = 2048, .receive_count = 8};
    options.receive_memory = std::make_shared<ReceiveMemory>(users);
    // With 16 bytes of protection, in whole cache lines.
    EXPECT_THAT([&] { validate(options); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr("receive_memory has 10000 bytes"), HasSubstr("needs 16896"))));
    users.resize(16'896);
    options.receive_memory = std::make_shared<ReceiveMemory>(users);
    EXPECT_NO_THROW(validate(options));
    EXPECT_THROW(ReceiveMemory{std::span<std::byte>{}}, std::invalid_argument);
}

} // namespace
} // namespace netio::test::receive_memory_test
