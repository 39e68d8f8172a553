// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_store.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PageStoreTest : public testing::Test {
  protected:
    static constexpr std::size_t pool = 4096;

    std::vector<std::size_t> sizes_of(const std::vector<std::uint32_t>& pages) const {
        std::vector<std::size_t> sizes;
        for (const std::uint32_t page : pages)
            sizes.push_back(store.size(page));
        return sizes;
    }
    // Pages of so many bytes, every second of which is released: holes that do not touch.
    void leave_holes_of(std::size_t bytes) {
        std::vector<std::uint32_t> pages;
        while (store.free() > 0)
            pages.push_back(store.open(bytes, bytes).value());
        for (std::size_t i = 0; i < pages.size(); i += 2)
            store.abandon(pages[i]);
    }

    PageStore store{pool};
    Shares shares{pool};
};

TEST_F(PageStoreTest, APageIsAsLargeAsWantedWhereThereIsAPieceOrAsTheLargestThatWillDo) {
    EXPECT_EQ(store.memory(store.open(64, 1000).value()).size(), 1024U) << "in whole cache lines";
    leave_holes_of(512);
    EXPECT_EQ(store.memory(store.open(64, 1024).value()).size(), 512U);
    EXPECT_FALSE(store.open(576, 1024)) << "that is less than it needs at least";
}

TEST_F(PageStoreTest, ASealedPageKeepsWhatItHoldsAndTakesThatOfThePool) {
    const std::uint32_t page = store.open(64, 1024).value();
    EXPECT_EQ(shares.free(), pool) << "as long as it is being filled";
    store.memory(page)[99] = std::byte{5};
    store.seal(page, 100, PageStore::Contents::later_fragment, {.fid = Fid{3}, .status = 4},
               shares);
    EXPECT_EQ(store.size(page), 128U);
    EXPECT_EQ(shares.free(), pool - 128);
    EXPECT_EQ(store.free(), pool - 128);
    ASSERT_EQ(store.memory(page).size(), 100U);
    EXPECT_EQ(store.slice(page).size, 100U);
    EXPECT_EQ(store.slice(page).data[99], std::byte{5});
    EXPECT_EQ(store.contents(page), PageStore::Contents::later_fragment);
    EXPECT_EQ(store.fragment(page).fid, Fid{3});
    EXPECT_EQ(store.fragment(page).status, 4);
}

TEST_F(PageStoreTest, APageIsFreeWhenTheLastOfItsUsersHasGivenItBack) {
    const std::uint32_t page = store.open(64, 1024).value();
    store.seal(page, 1000, PageStore::Contents::records, {}, shares);
    store.add_user(page);
    store.add_user(page);
    for (int others = 2; others > 0; --others) {
        store.release(page, shares);
        EXPECT_EQ(shares.free(), pool - 1024) << others;
        EXPECT_EQ(store.free(), pool - 1024) << others;
    }
    store.release(page, shares);
    EXPECT_EQ(shares.free(), pool);
    EXPECT_EQ(store.free(), pool);
}

TEST_F(PageStoreTest, APageThatIsShortenedLeavesTheRestToOthers) {
    const std::uint32_t page = store.open(64, 1024).value();
    store.shorten(page, 200);
    EXPECT_EQ(store.size(page), 256U);
    EXPECT_EQ(store.memory(page).size(), 256U);
    EXPECT_EQ(store.free(), pool - 256);
}

TEST_F(PageStoreTest, SeveralPagesHaveRoomForAllBytesTogetherAndNoneMoreThanTheMost) {
    EXPECT_THAT(sizes_of(store.open_for(2500, 64, 1024)), ElementsAre(1024, 1024, 512));
    EXPECT_THAT(sizes_of(store.open_for(1024, 64, 1024)), ElementsAre(1024)) << "and no empty one";
}

TEST_F(PageStoreTest, SeveralPagesFillTheHolesThatThereAre) {
    leave_holes_of(512);
    EXPECT_THAT(sizes_of(store.open_for(1500, 64, 1024)), ElementsAre(512, 512, 512));
}

TEST_F(PageStoreTest, WhereThereIsNotRoomForAllNoneIsTaken) {
    leave_holes_of(512);
    const std::size_t before = store.free();
    EXPECT_THAT(store.open_for(before + 1, 64, 1024), IsEmpty());
    EXPECT_EQ(store.free(), before);
    EXPECT_THAT(store.open_for(1500, 1024, 1024), IsEmpty()) << "in pieces that are too small";
    EXPECT_EQ(store.free(), before);
}

} // namespace
} // namespace netio::pubsub
