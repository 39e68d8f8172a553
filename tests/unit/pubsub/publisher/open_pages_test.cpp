// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/open_pages.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netio::pubsub {
namespace {

constexpr std::size_t page_bytes = 1024;
constexpr std::size_t page_count = 8;

class OpenPagesTest : public testing::Test {
  protected:
    bool open(Group& group) { return pages.open(group, record, page_bytes); }
    bool takes(Group& group, std::size_t bytes) {
        return pages.append(group, Fid{1}, 0, bytes) != nullptr;
    }
    // Nothing is left beside the pages that are open.
    void use_up_the_memory() {
        while (store.free() > 0)
            ASSERT_TRUE(store.open(1, page_bytes));
    }

    static constexpr std::size_t record = 100;
    PageTerms terms{{.page_bytes = page_bytes, .page_count = page_count}};
    PageStore store{terms.pool()};
    OpenPages pages{store, terms};
};

// A quarter of the memory is set aside for pages that are being filled: 2 KiB.
TEST_F(OpenPagesTest, ForWantOfMemoryThoseOfOthersBecomeAsLargeAsThePartOfEachAndNoSmaller) {
    std::array<Group, 4> groups;
    for (Group& group : groups)
        ASSERT_TRUE(open(group));
    ASSERT_TRUE(takes(groups[0], 8));
    use_up_the_memory();
    Group next;
    ASSERT_TRUE(open(next));
    constexpr std::size_t part = page_bytes * page_count / 4 / 5;
    EXPECT_TRUE(takes(groups[0], part - 50)) << "its own part is kept for it";
    EXPECT_FALSE(takes(groups[0], part)) << "and what was more is not";
    EXPECT_TRUE(takes(next, record - page::header_bytes));
}

} // namespace
} // namespace netio::pubsub
