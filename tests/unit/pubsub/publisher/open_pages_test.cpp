// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/open_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

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

// Pages of 256 KiB that leave early take the first places of the memory again.
TEST(OpenPages, UseTheSameMemoryAgainWhenTheyLeaveEarly) {
    const PageTerms terms{{.page_bytes = 256 * 1024, .page_count = 16}};
    PageStore store{terms.pool()};
    OpenPages pages{store, terms};
    Shares shares{terms.pool()};
    const std::byte* const begin = store.memory(*store.open(64, 64)).data();
    std::vector<std::uint32_t> sent;
    std::size_t highest = 0;
    for (int i = 0; i < 100; ++i) {
        Group group;
        ASSERT_TRUE(pages.open(group, 1000, terms.page_bytes()));
        const OpenPages::Filled filled = pages.take(group.place);
        store.seal(filled.page, terms.early_bytes(), PageStore::Contents::records, {}, shares);
        const auto memory = store.memory(filled.page);
        highest =
            std::max(highest, static_cast<std::size_t>(memory.data() + memory.size() - begin));
        sent.push_back(filled.page);
        if (sent.size() < 3) continue; // three pages are in flight
        store.release(sent.front(), shares);
        sent.erase(sent.begin());
    }
    EXPECT_LE(highest, 4 * terms.early_bytes());
}

} // namespace
} // namespace netio::pubsub
