// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/mailbox.hpp"

#include "pubsub/core/answer_book.hpp"

#include <gmock/gmock.h>

#include <array>

namespace netio::pubsub {
namespace {

using Put = Mailbox::Put;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array<std::byte, 10> ten{};

TEST(Mailbox, WhoBlocksIsToldThatItIsFullAndLosesNothing) {
    Mailbox box{{.messages = 2, .bytes = 1000}};
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::taken);
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::full);
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::full) << "it was on its way";
    std::vector<Message> out;
    EXPECT_FALSE(box.has_room());
    EXPECT_EQ(box.take(out, 2), 2U);
    EXPECT_TRUE(box.has_room());
    EXPECT_EQ(box.take(out, 9), 1U);
    EXPECT_TRUE(box.empty());
}

TEST(Mailbox, ItsBytesAreLimitedAsWell) {
    Mailbox box{{.messages = 100, .bytes = 20}};
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::taken);
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::full);
    std::vector<Message> out;
    box.take(out, 1);
    EXPECT_TRUE(box.has_room());
}

TEST(Mailbox, WhatIsDroppedIsToldWithTheNextMessageOfItsFid) {
    Mailbox box{{.messages = 1, .bytes = 1000, .when_full = SlowPolicy::drop}};
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::full);
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::dropped);
    EXPECT_EQ(box.put(Fid{2}, ten, 0), Put::dropped);
    EXPECT_EQ(box.put(Fid{1}, ten, 0), Put::dropped);
    EXPECT_EQ(box.dropped(), 3U);
    std::vector<Message> out;
    box.take(out, 1);
    box.put(Fid{1}, ten, 7);
    box.take(out, 1);
    box.put(Fid{1}, ten, 0);
    box.take(out, 1);
    ASSERT_EQ(out.size(), 3U);
    EXPECT_EQ(out[0].missed, 0U);
    EXPECT_EQ(out[1].missed, 2U);
    EXPECT_EQ(out[1].status, 7);
    EXPECT_EQ(out[2].missed, 0U) << "it is told once";
}

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

TEST(AnswerBook, ASubscriptionIsAcceptedWhenAllOfItIsByWhomever) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9), range(20, 29)};
    book.add(fids, 1);
    EXPECT_THAT(book.accept(range(0, 5)), IsEmpty());
    EXPECT_THAT(book.accept(range(20, 29)), IsEmpty());
    EXPECT_THAT(book.accept(range(6, 9)), ElementsAre(1));
    EXPECT_THAT(book.take_all(), IsEmpty());
}

TEST(AnswerBook, ItIsRefusedWithTheFirstOfItsFidsThatIs) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9)};
    book.add(fids, 1);
    book.add(fids, 2);
    EXPECT_THAT(book.refuse(range(10, 99)), IsEmpty());
    EXPECT_THAT(book.refuse(range(9, 9)), ElementsAre(1, 2));
}

TEST(AnswerBook, TheEndAnswersAllThatWait) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9)};
    book.add(fids, 1);
    EXPECT_THAT(book.take_all(), ElementsAre(1));
}

} // namespace
} // namespace netio::pubsub
