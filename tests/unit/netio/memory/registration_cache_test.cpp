// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/registration_cache.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace netio::registration_cache_test {
namespace {

class Registrations : public testing::Test {
  protected:
    std::span<std::byte> piece(std::size_t at, std::size_t size) {
        return std::span{memory}.subspan(at, size);
    }
    std::vector<std::byte> memory{10'000};
};

TEST_F(Registrations, AreFoundForPartsOfARegisteredRegion) {
    RegistrationCache cache;
    RegisteredBuffer* first = nullptr;
    {
        const auto borrowed = cache.borrow(piece(100, 1'000), Access::local);
        first = borrowed.slice().buffer;
        EXPECT_EQ(borrowed.slice().data, memory.data() + 100);
        EXPECT_EQ(borrowed.slice().size, 1'000U);
    }
    const auto part = cache.borrow(piece(600, 500), Access::send);
    EXPECT_EQ(part.slice().buffer, first);
    EXPECT_EQ(part.slice().data, memory.data() + 600);
    EXPECT_EQ(cache.counters().hits, 1U);
    EXPECT_EQ(cache.counters().misses, 1U);
    EXPECT_EQ(cache.registered_bytes(), 1'000U);
}

TEST_F(Registrations, DoNotServeMoreMemoryOrMoreAccessThanTheyCover) {
    RegistrationCache cache;
    const auto borrowed = cache.borrow(piece(100, 1'000), Access::local);
    for (const auto& other : {piece(99, 10), piece(600, 501), piece(0, 5'000)})
        EXPECT_NE(cache.borrow(other, Access::local).slice().buffer, borrowed.slice().buffer);
    EXPECT_NE(cache.borrow(piece(100, 10), Access::remote_write).slice().buffer,
              borrowed.slice().buffer);
    EXPECT_EQ(cache.counters().hits, 0U);
}

TEST_F(Registrations, TheLeastRecentlyUsedIsEvictedAndBorrowedOnesStay) {
    RegistrationCache cache{2'000};
    std::optional borrowed{cache.borrow(piece(0, 1'000), Access::local)};
    cache.borrow(piece(1'000, 1'000), Access::local);
    cache.borrow(piece(2'000, 500), Access::local); // evicts the second
    EXPECT_EQ(cache.registered_bytes(), 1'500U);
    EXPECT_EQ(cache.counters().evictions, 1U);
    cache.borrow(piece(2'000, 500), Access::local);
    EXPECT_EQ(cache.counters().hits, 1U);

    borrowed = cache.borrow(piece(3'000, 1'500), Access::local); // then evicts the first
    EXPECT_EQ(cache.registered_bytes(), 1'500U);
    EXPECT_EQ(borrowed->slice().data, memory.data() + 3'000);
}

TEST_F(Registrations, AReusedOneStaysAndTheLimitIsKept) {
    RegistrationCache cache{2'000};
    cache.borrow(piece(0, 1'000), Access::local);
    cache.borrow(piece(1'000, 1'000), Access::local);
    EXPECT_EQ(cache.registered_bytes(), 2'000U) << "the limit is kept exactly";
    cache.borrow(piece(0, 1'000), Access::local); // used again
    cache.borrow(piece(2'000, 1'000), Access::local);
    EXPECT_EQ(cache.counters().evictions, 1U);
    cache.borrow(piece(0, 1'000), Access::local);
    EXPECT_EQ(cache.counters().hits, 2U);
}

TEST_F(Registrations, MoreThanTheLimitMayBeBorrowedAtOnce) {
    RegistrationCache cache{100};
    {
        const auto one = cache.borrow(piece(0, 1'000), Access::local);
        const auto two = cache.borrow(piece(1'000, 1'000), Access::local);
        EXPECT_EQ(cache.registered_bytes(), 2'000U);
    }
    EXPECT_EQ(cache.registered_bytes(), 0U);
}

TEST_F(Registrations, AreForgottenWhereTheyTouch) {
    RegistrationCache cache;
    cache.borrow(piece(0, 1'000), Access::local);
    cache.borrow(piece(1'000, 1'000), Access::local);
    cache.borrow(piece(500, 1'000), Access::local);
    cache.forget(piece(999, 1));
    EXPECT_EQ(cache.registered_bytes(), 1'000U);
    cache.forget(piece(0, 1'000));
    EXPECT_EQ(cache.registered_bytes(), 1'000U);
    cache.borrow(piece(1'500, 10), Access::local);
    EXPECT_EQ(cache.counters().hits, 1U);
}

using RegistrationsDeathTest = Registrations;

TEST_F(RegistrationsDeathTest, ABorrowedRegionCannotBeForgotten) {
    RegistrationCache cache;
    const auto borrowed = cache.borrow(piece(0, 1'000), Access::local);
    EXPECT_DEATH(cache.forget(piece(10, 1)), "still borrowed");
}

} // namespace
} // namespace netio::registration_cache_test
