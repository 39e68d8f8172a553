// SPDX-License-Identifier: Apache-2.0
#include "netio/base/option_check.hpp"
#include "netio/base/slot_pool.hpp"

#include <gtest/gtest.h>

#include <string>

namespace netio::slot_pool_test {
namespace {

TEST(SlotPool, NumbersAreUsedAgainAndValuesAreNot) {
    SlotPool<std::string> pool;
    const std::uint32_t first = pool.take("first");
    const std::uint32_t second = pool.take("second");
    EXPECT_NE(first, second);
    EXPECT_EQ(pool.size(), 2U);
    EXPECT_EQ(pool.release(first), "first");
    EXPECT_EQ(pool[first], "");
    EXPECT_EQ(pool.take("third"), first);
    EXPECT_EQ(pool[second], "second");
    EXPECT_EQ(pool.end(), 2U);
}

std::string refusal(std::uint64_t value) {
    try {
        require_between("page_count", value, 2, 9);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

TEST(OptionCheck, NamesTheOptionItsValueAndWhatIsAllowed) {
    EXPECT_EQ(refusal(1), "page_count is 1; it must be from 2 to 9");
    EXPECT_EQ(refusal(10), "page_count is 10; it must be from 2 to 9");
    EXPECT_EQ(refusal(2), "");
    EXPECT_EQ(refusal(9), "");
    EXPECT_THROW(require_at_least("flush_time", -1, 0), std::invalid_argument);
}

} // namespace
} // namespace netio::slot_pool_test
