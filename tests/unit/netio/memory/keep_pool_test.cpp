// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/keep_pool.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace netio::test::keep_pool_test {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

constexpr TimePoint start{};

std::vector<std::byte> bytes_of(std::size_t size, int value) {
    return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

KeepPool::Buffer buffer_of(std::size_t bytes, std::optional<std::uint32_t> home = {}) {
    return {.memory = std::make_shared<RegisteredBuffer>(bytes), .home = home};
}

std::vector<KeepPool::Buffer> returned_to(KeepPool& pool) {
    std::vector<KeepPool::Buffer> buffers;
    pool.take_returned(buffers);
    return buffers;
}

std::size_t extra_bytes(KeepPool& pool) {
    std::vector<KeepPool::Buffer> buffers;
    return pool.take_returned(buffers);
}

bool has_value(const KeptBytes& kept, int value) {
    return std::ranges::all_of(
        kept.bytes(), [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

TEST(KeptBytes, ACopyLastsAndSharesItsMemoryWithFurtherCopies) {
    KeptBytes kept;
    {
        const std::vector<std::byte> original = bytes_of(100, 7);
        kept = KeptBytes::copy_of(original);
    }
    const KeptBytes shared = kept;
    const KeptBytes part = kept.part(kept.bytes().subspan(10, 5));
    EXPECT_EQ(shared.bytes().data(), kept.bytes().data());
    kept = {};
    EXPECT_TRUE(kept.empty());
    EXPECT_EQ(part.size(), 5U);
    EXPECT_TRUE(has_value(part, 7));
    EXPECT_TRUE(has_value(shared, 7));
}

TEST(KeepPool, CountsALentBufferUntilItsLastCopyIsDestroyed) {
    const auto pool = std::make_shared<KeepPool>(600);
    // The first piece of a window has the memory of all its receives.
    auto loan = pool->lend([] { return buffer_of(8 * 600, 3); }, start);
    auto copy = loan;
    EXPECT_EQ(pool->stats(start + 5s).bytes, 600U);
    EXPECT_EQ(pool->stats(start + 5s).buffers, 1U);
    EXPECT_EQ(pool->stats(start + 5s).oldest, Duration{5s});
    loan.reset();
    EXPECT_THAT(returned_to(*pool), IsEmpty());
    copy.reset();
    const auto returned = returned_to(*pool);
    ASSERT_THAT(returned, SizeIs(1));
    EXPECT_EQ(returned[0].home, 3U);
    EXPECT_EQ(pool->stats(start).buffers, 0U);
    EXPECT_THAT(returned_to(*pool), IsEmpty()) << "each buffer is returned once";
}

TEST(KeepPool, SmallMessagesShareASlabThatCountsAsAWhole) {
    const auto pool = std::make_shared<KeepPool>(65536);
    std::vector<KeptBytes> kept;
    for (int i = 0; i < 10; ++i)
        kept.push_back(pool->copy(bytes_of(40, i), start));
    EXPECT_EQ(pool->stats(start).buffers, 1U);
    EXPECT_EQ(pool->stats(start).bytes, KeepPool::slab_bytes);
    EXPECT_EQ(extra_bytes(*pool), KeepPool::slab_bytes);
    for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(has_value(kept[static_cast<std::size_t>(i)], i)) << i;
    // A message that does not fit into the rest begins another slab.
    const KeptBytes large = pool->copy(bytes_of(KeepPool::slab_bytes - 399, 1), start);
    EXPECT_EQ(pool->stats(start).buffers, 2U);
    EXPECT_EQ(extra_bytes(*pool), 2 * KeepPool::slab_bytes);
    kept.clear();
    EXPECT_EQ(pool->stats(start).buffers, 1U) << "nothing in the first slab is kept";
    EXPECT_EQ(extra_bytes(*pool), KeepPool::slab_bytes);
}

TEST(KeepPool, CopiesWhatIsSmallComparedWithItsBuffer) {
    const KeepPool large{258 * 1024};
    EXPECT_TRUE(large.copies(KeepPool::copied_below - 1));
    EXPECT_FALSE(large.copies(KeepPool::copied_below));
    const KeepPool small{4096};
    EXPECT_TRUE(small.copies(511));
    EXPECT_FALSE(small.copies(512));
}

TEST(KeepPool, TheOldestIsTheOneThatWasLentFirstOfThoseThatAreLeft) {
    const auto pool = std::make_shared<KeepPool>(65536);
    auto first = pool->lend([] { return buffer_of(10); }, start);
    const auto second = pool->lend([] { return buffer_of(10); }, start + 2s);
    EXPECT_EQ(pool->stats(start + 5s).oldest, Duration{5s});
    first.reset();
    EXPECT_EQ(pool->stats(start + 5s).oldest, Duration{3s});
}

TEST(KeepPool, AdoptsTheMemoryOfAJoinedMessageWithoutACopy) {
    const auto pool = std::make_shared<KeepPool>(65536);
    std::vector<std::byte> message = bytes_of(500, 9);
    const std::byte* const data = message.data();
    const KeptBytes kept = pool->adopt(std::move(message), start);
    EXPECT_EQ(kept.bytes().data(), data);
    EXPECT_EQ(pool->stats(start).bytes, 500U);
    EXPECT_EQ(extra_bytes(*pool), 500U);
}

TEST(KeepPool, WakesTheSessionOnceForAReturn) {
    const auto pool = std::make_shared<KeepPool>(65536);
    std::vector<std::shared_ptr<const void>> loans;
    for (int i = 0; i < 4; ++i)
        loans.push_back(pool->lend([] { return buffer_of(10); }, start));
    loans.pop_back();
    int calls = 0;
    pool->wake_on_return([&] { ++calls; });
    EXPECT_EQ(calls, 0);
    for (int i = 0; i < 3; ++i) {
        loans.pop_back();
        EXPECT_EQ(calls, 1);
    }
}

TEST(KeepPool, WhatIsKeptOutlivesTheSession) {
    auto pool = std::make_shared<KeepPool>(65536);
    KeepPool::Buffer buffer = buffer_of(100);
    std::ranges::fill(buffer.memory->memory(), std::byte{5});
    const std::weak_ptr<RegisteredBuffer> memory = buffer.memory;
    const std::span<const std::byte> bytes = buffer.memory->memory();
    KeptBytes kept{pool->lend([&] { return std::move(buffer); }, start), bytes};
    KeptBytes small = pool->copy(bytes_of(10, 6), start);
    bool woken = false;
    pool->wake_on_return([&] { woken = true; });
    pool->detach();
    pool.reset();
    EXPECT_TRUE(has_value(kept, 5));
    EXPECT_TRUE(has_value(small, 6));
    std::jthread{[kept = std::move(kept)]() mutable { kept = {}; }}.join();
    kept = {};
    EXPECT_TRUE(memory.expired()) << "the memory is freed with the last copy";
    EXPECT_FALSE(woken);
}

TEST(KeepPool, ThreadsReturnWhileTheLoopLends) {
    const auto pool = std::make_shared<KeepPool>(65536);
    std::vector<std::vector<KeptBytes>> kept(4);
    for (int i = 0; i < 4000; ++i)
        kept[static_cast<std::size_t>(i % 4)].push_back(pool->copy(bytes_of(64, i % 100), start));
    std::size_t lent = 0;
    std::size_t back = 0;
    {
        std::vector<std::jthread> threads;
        for (auto& part : kept)
            threads.emplace_back([&part] { part.clear(); });
        for (; lent < 1000; ++lent) {
            pool->lend([] { return buffer_of(4096); }, start).reset();
            back += returned_to(*pool).size();
        }
    }
    EXPECT_EQ(back, lent);
    EXPECT_EQ(pool->stats(start).buffers, 0U);
    EXPECT_EQ(pool->stats(start).bytes, 0U);
}

} // namespace
} // namespace netio::test::keep_pool_test
