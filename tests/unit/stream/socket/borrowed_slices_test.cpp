// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/directions.hpp"

#include <gtest/gtest.h>

namespace netio::stream::borrowed_slices_test {
namespace {

TEST(BorrowedSlices, FindsMemoryByItsNumberAfterTheFrontHasLeft) {
    RegisteredBuffer buffer{100};
    BorrowedSlices queue{3};
    EXPECT_EQ(queue.push(buffer.slice(0, 10), Cookie{7}), 0U);
    EXPECT_EQ(queue.push(buffer.slice(10, 20), Cookie{8}), 1U);
    EXPECT_EQ(queue.pop_front(), Cookie{7});
    EXPECT_EQ(queue.push(buffer.slice(30, 40), Cookie{9}), 2U);
    EXPECT_EQ(queue.at(1).data, buffer.data() + 10);
    EXPECT_EQ(queue.at(2).size, 40U);
    const Slice part = queue.slice(2, 5, 35);
    EXPECT_EQ(part.buffer, &buffer);
    EXPECT_EQ(part.data, buffer.data() + 35);
    EXPECT_EQ(part.size, 35U);
    EXPECT_EQ(queue.pop_front(), Cookie{8});
    EXPECT_EQ(queue.pop_front(), Cookie{9});
    EXPECT_TRUE(queue.empty());
}

TEST(BorrowedSlices, HasALimit) {
    RegisteredBuffer buffer{10};
    BorrowedSlices queue{2};
    EXPECT_FALSE(queue.is_full());
    queue.push(buffer.slice(), Cookie{1});
    queue.push(buffer.slice(), Cookie{2});
    EXPECT_TRUE(queue.is_full());
    queue.pop_front();
    EXPECT_FALSE(queue.is_full());
    EXPECT_EQ(queue.size(), 1U);
}

TEST(BorrowedSlicesDeathTest, AbortsOnASliceThatIsNotBorrowed) {
    RegisteredBuffer buffer{10};
    BorrowedSlices queue{2};
    queue.push(buffer.slice(), Cookie{1});
    EXPECT_DEATH(static_cast<void>(queue.at(1)), "check failed");
    EXPECT_DEATH(static_cast<void>(queue.slice(0, 5, 6)), "check failed");
    queue.pop_front();
    EXPECT_DEATH(static_cast<void>(queue.at(0)), "check failed");
}

} // namespace
} // namespace netio::stream::borrowed_slices_test
