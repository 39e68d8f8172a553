// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/page_pool.hpp"

#include <gmock/gmock.h>

#include <set>

namespace netio::page_pool_test {
namespace {

TEST(PagePool, FreesAPageWithItsLastUser) {
    PagePool pool{256, 2};
    const auto page = pool.take();
    ASSERT_TRUE(page);
    pool.add_user(*page);
    pool.release(*page);
    EXPECT_EQ(pool.free_count(), 1U);
    pool.release(*page);
    EXPECT_EQ(pool.free_count(), 2U);
}

TEST(PagePool, PagesDoNotOverlapAndEndWithThePool) {
    PagePool pool{256, 3};
    std::set<std::byte*> places;
    for (int i = 0; i < 3; ++i) {
        const auto page = pool.take();
        ASSERT_TRUE(page);
        EXPECT_EQ(pool.memory(*page).size(), 256U);
        EXPECT_EQ(pool.slice(*page, 10).data, pool.memory(*page).data());
        places.insert(pool.memory(*page).data());
    }
    EXPECT_FALSE(pool.take());
    EXPECT_EQ(places.size(), 3U);
    EXPECT_EQ(*places.rbegin() - *places.begin(), 512);
}

} // namespace
} // namespace netio::page_pool_test
