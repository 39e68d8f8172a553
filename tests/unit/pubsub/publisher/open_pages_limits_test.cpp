// SPDX-License-Identifier: Apache-2.0

// When a page that is being filled is to leave, and what of its memory others may have.

#include "pubsub/publisher/open_pages.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::Each;
using testing::SizeIs;

constexpr std::size_t page_bytes = 1024;
constexpr std::size_t page_count = 8;
constexpr std::size_t watermark = 200;
constexpr std::size_t first_header = 12; // of a page's first message; those of the same fid have 4
constexpr std::size_t next_header = 4;

// A quarter of the memory is set aside for pages that are being filled: 2 KiB.
class OpenPagesLimits : public testing::Test {
  protected:
    Group& open(std::size_t record = 100, std::size_t most = page_bytes) {
        Group& group = groups.emplace_back();
        EXPECT_TRUE(pages.open(group, record, most));
        return group;
    }
    bool append(Group& group, std::size_t bytes) {
        return pages.append(group, Fid{1}, 0, bytes) != nullptr;
    }
    // What whoever publishes does where the lane has room.
    static bool write(Group& group, std::size_t bytes) {
        return group.writer.append(Fid{1}, 0, bytes) != nullptr;
    }
    void use_up_the_memory() {
        while (store.free() > 0)
            ASSERT_TRUE(store.open(1, page_bytes));
    }
    // Beside the pages that are open others are in use, until so much is free.
    void leave(std::size_t free) {
        while (store.free() > free)
            ASSERT_TRUE(store.open(1, std::min(page_bytes, store.free() - free)));
    }

    PageTerms terms{
        {.page_bytes = page_bytes, .page_count = page_count, .watermark_bytes = watermark}};
    PageStore store{terms.pool()};
    OpenPages pages{store, terms};
    std::deque<Group> groups;
};

TEST_F(OpenPagesLimits, APageIsDueOnceItHoldsAsMuchAsTheWatermark) {
    Group& group = open();
    ASSERT_TRUE(append(group, 100));
    ASSERT_TRUE(append(group, watermark - 1 - (first_header + 100) - next_header));
    EXPECT_EQ(group.writer.used(), watermark - 1);
    EXPECT_FALSE(pages.is_due(group));
    Group& other = open();
    ASSERT_TRUE(append(other, 100));
    ASSERT_TRUE(append(other, watermark - (first_header + 100) - next_header));
    EXPECT_EQ(other.writer.used(), watermark);
    EXPECT_TRUE(pages.is_due(other));
}

TEST_F(OpenPagesLimits, TheMessageThatReachesTheWatermarkIsWrittenHereAndNoneBeforeIt) {
    Group& group = open();
    ASSERT_TRUE(append(group, 100));
    const std::size_t reaching = watermark - (first_header + 100) - next_header;
    EXPECT_FALSE(write(group, reaching)) << "it would not be seen that the page is due";
    EXPECT_TRUE(write(group, reaching - 1));
    EXPECT_FALSE(write(group, 0));
    EXPECT_TRUE(append(group, 500)) << "however far it goes beyond";
    EXPECT_TRUE(pages.is_due(group));
}

TEST_F(OpenPagesLimits, APageThatWasMadeForLittleIsDueOnceNoMessageFitsAnyMore) {
    constexpr std::size_t small = 128;
    Group& group = open(small, small);
    ASSERT_TRUE(append(group, small - page::header_bytes - first_header));
    EXPECT_FALSE(pages.is_due(group)) << "a message of no bytes and another fid still fits";
    Group& other = open(small, small);
    ASSERT_TRUE(append(other, small - page::header_bytes - first_header + 1));
    EXPECT_TRUE(pages.is_due(other));
}

TEST_F(OpenPagesLimits, WhatWasTakenLeavesALaneWithoutRoomAndTheNextPageIsAnother) {
    Group& group = open();
    ASSERT_TRUE(append(group, 100));
    const OpenPages::Filled filled = pages.take(group.place);
    EXPECT_EQ(filled.bytes, first_header + 100);
    EXPECT_EQ(filled.group, &group);
    EXPECT_TRUE(pages.empty());
    EXPECT_EQ(group.place, Group::nowhere);
    EXPECT_FALSE(write(group, 0)) << "it is somebody else's by now";
}

TEST_F(OpenPagesLimits, ForWantOfMemoryAllThatIsNotFilledGoesToWhoNeedsIt) {
    for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(append(open(), 8));
    use_up_the_memory();
    open(); // has what the others had beyond the part of each
    use_up_the_memory();
    Group& last = open(); // for which there is no such piece
    EXPECT_TRUE(append(last, 100 - page::header_bytes));
    for (Group& group : groups)
        EXPECT_FALSE(write(group, 150)) << "memory that was released";
}

TEST_F(OpenPagesLimits, ALargeMessageHasWhatOpenPagesDoNotNeed) {
    ASSERT_TRUE(append(open(), 8));
    const std::vector<std::uint32_t> taken = pages.take_pages(terms.pool() - 64);
    EXPECT_THAT(taken, SizeIs(page_count)) << "all but the line that the message takes";
    EXPECT_EQ(store.free(), 0U);
}

TEST_F(OpenPagesLimits, ALargeMessageFitsIntoGapsToo) {
    std::vector<std::uint32_t> others;
    for (int i = 0; i < 16; ++i)
        others.push_back(store.open(512, 512).value());
    for (std::size_t i = 0; i < others.size(); i += 2)
        store.abandon(others[i]);
    std::vector<std::size_t> sizes;
    for (const std::uint32_t page : pages.take_pages(2048))
        sizes.push_back(store.size(page));
    EXPECT_THAT(sizes, SizeIs(4));
    EXPECT_THAT(sizes, Each(512U));
    EXPECT_TRUE(pages.take_pages(4096).empty()) << "half of that is left";
}

// Where less than half of the memory is left, and the open pages have more than their part.
TEST_F(OpenPagesLimits, WhereLittleIsLeftWhatFewMessagesNeedGoesBack) {
    for (int i = 0; i < 6; ++i)
        open();
    const std::size_t opened = terms.pool() - store.free();
    ASSERT_GT(opened, terms.set_aside());
    leave(terms.pool() / 2);
    EXPECT_EQ(pages.free(terms.pool() / 2 + opened), terms.pool() / 2) << "half of it is enough";
    leave(terms.pool() / 2 - 64);
    constexpr std::size_t kept = 192; // half of the part of each, in whole lines
    EXPECT_EQ(pages.free(store.free() + opened), terms.pool() / 2 - 64 + opened - 6 * kept);
    EXPECT_EQ(store.free(), terms.pool() / 2 - 64 + opened - 6 * kept);
}

TEST_F(OpenPagesLimits, WhereLittleIsLeftNoMoreThanTheirPartIsNoReasonToGiveAnythingBack) {
    open();
    open();
    ASSERT_EQ(terms.pool() - store.free(), terms.set_aside());
    leave(1024);
    EXPECT_EQ(pages.free(1024 + terms.set_aside()), 1024U);
    EXPECT_EQ(pages.free(1024 + terms.set_aside() + 1), 1024U + 2 * 512) << "half of their part";
}

} // namespace
} // namespace netio::pubsub
