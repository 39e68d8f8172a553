// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/newest_book.hpp"

#include <gmock/gmock.h>

#include <array>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr SubscriberId anna{1};
constexpr SubscriberId bert{2};
constexpr std::array<FidRange, 1> range(std::uint64_t first, std::uint64_t last) {
    return {{{.first = Fid{first}, .last = Fid{last}}}};
}

void put(NewestBook& book, SubscriberId subscriber, std::uint64_t fid) {
    book.store_of(subscriber)->put(Fid{fid}, {}, 0);
}

TEST(NewestBook, HasAStoreOfThoseOnlyWhoWantTheNewest) {
    NewestBook book{10000, 100};
    book.note(anna, range(1, 9), SlowPolicy::drop);
    EXPECT_EQ(book.store_of(anna), nullptr);
    EXPECT_EQ(book.requests(anna), 0U);
    book.note(anna, range(5, 5), SlowPolicy::newest);
    ASSERT_NE(book.store_of(anna), nullptr);
    EXPECT_EQ(book.store_of(bert), nullptr);
    EXPECT_EQ(book.store_of(bert, Fid{5}, UINT32_MAX), nullptr);
    EXPECT_FALSE(book.keeps(anna));
    put(book, anna, 5);
    EXPECT_TRUE(book.keeps(anna));
    book.remove(anna);
    EXPECT_FALSE(book.keeps(anna));
}

TEST(NewestBook, WhatEnteredBeforeTheFidWasWantedLikeThisIsNotKept) {
    NewestBook book{10000, 100};
    book.note(anna, range(1, 1), SlowPolicy::newest);
    const std::uint32_t before = book.requests(anna);
    book.note(anna, range(2, 2), SlowPolicy::newest);
    const std::uint32_t after = book.requests(anna);
    EXPECT_EQ(book.store_of(anna, Fid{1}, 0), nullptr);
    EXPECT_NE(book.store_of(anna, Fid{1}, before), nullptr);
    EXPECT_EQ(book.store_of(anna, Fid{2}, before), nullptr);
    EXPECT_NE(book.store_of(anna, Fid{2}, after), nullptr);
    EXPECT_EQ(book.store_of(anna, Fid{3}, after), nullptr);
}

TEST(NewestBook, ASecondRequestForTheSameChangesNothing) {
    NewestBook book{10000, 100};
    book.note(anna, range(1, 3), SlowPolicy::newest);
    const std::uint32_t before = book.requests(anna);
    put(book, anna, 2);
    EXPECT_THAT(book.note(anna, range(2, 5), SlowPolicy::newest).missed, IsEmpty());
    EXPECT_TRUE(book.keeps(anna));
    EXPECT_NE(book.store_of(anna, Fid{2}, before), nullptr);
    EXPECT_EQ(book.store_of(anna, Fid{5}, before), nullptr);
}

TEST(NewestBook, AnotherPolicyOrNoneEndsWhatIsKept) {
    for (const std::optional<SlowPolicy> policy :
         {std::optional<SlowPolicy>{}, std::optional{SlowPolicy::block}}) {
        NewestBook book{10000, 100};
        book.note(anna, range(1, 3), SlowPolicy::newest);
        for (std::uint64_t fid = 1; fid <= 3; ++fid)
            put(book, anna, fid);
        const NewestStore::Forgotten gone = book.note(anna, range(2, 2), policy);
        EXPECT_THAT(gone.missed, ElementsAre(FidCount{Fid{2}, 1}));
        EXPECT_THAT(gone.dropped, ElementsAre(Fid{2}));
        EXPECT_EQ(book.store_of(anna)->messages(), 2U);
        EXPECT_EQ(book.store_of(anna, Fid{2}, UINT32_MAX), nullptr);
        const std::uint32_t before = book.requests(anna);
        book.note(anna, range(2, 2), SlowPolicy::newest);
        EXPECT_EQ(book.store_of(anna, Fid{2}, before), nullptr) << "that was of the former wish";
    }
}

// Else a stranger that asks for one fid after the other would have a piece for each.
TEST(NewestBook, FidsThatAreAskedForOneByOneDoNotAddUp) {
    NewestBook book{10000, 4};
    for (std::uint64_t fid = 1; fid <= 20; ++fid)
        book.note(anna, range(fid, fid), SlowPolicy::newest);
    EXPECT_NE(book.store_of(anna, Fid{1}, 1), nullptr);
    const std::uint32_t before = book.requests(anna);
    book.note(anna, range(21, 21), SlowPolicy::newest);
    EXPECT_EQ(book.store_of(anna, Fid{1}, before), nullptr);
    EXPECT_NE(book.store_of(anna, Fid{1}, book.requests(anna)), nullptr);
}

} // namespace
} // namespace netio::pubsub
