// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/batch_filler.hpp"
#include "pubsub/core/mailbox.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <span>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::SizeIs;

void fill(MessageBatch& batch, std::size_t messages, std::size_t size) {
    const std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < messages; ++i)
        batch.append({.fid = Fid{i}, .bytes = bytes});
}
void send(Mailbox& box, std::size_t messages, std::size_t size) {
    MessageBatch batch;
    fill(batch, messages, size);
    box.exchange(batch);
}

TEST(MailboxRules, WhoAsksForSoManyMessagesGetsNoMore) {
    Mailbox box{{.messages = 1000, .bytes = 100000}};
    send(box, 5, 10);
    std::vector<Message> out;
    EXPECT_EQ(box.take(out, 0), 0U);
    EXPECT_THAT(out, SizeIs(0));
    EXPECT_EQ(box.take(out, 2), 2U);
    EXPECT_THAT(out, SizeIs(2));
    EXPECT_EQ(box.take(out, 9), 3U);
    EXPECT_THAT(out, SizeIs(5));
    EXPECT_EQ(out.back().fid, Fid{4});
}

TEST(MailboxRules, HasRoomIfHalfOfTheMessagesAndHalfOfTheBytesAreFree) {
    Mailbox box{{.messages = 100, .bytes = 1000}};
    send(box, 1, 500);
    EXPECT_TRUE(box.has_room());
    send(box, 1, 1);
    EXPECT_FALSE(box.has_room()) << "two messages, but too many bytes";
    Mailbox other{{.messages = 100, .bytes = 1000}};
    send(other, 50, 1);
    EXPECT_TRUE(other.has_room());
    send(other, 1, 1);
    EXPECT_FALSE(other.has_room()) << "a few bytes, but too many messages";
}

TEST(MailboxRules, FewMessagesThatAreLargeAreNotCopiedToThoseThatWait) {
    Mailbox box{{.messages = 1000, .bytes = std::size_t{1} << 20}};
    send(box, 2, std::size_t{64} << 10);
    send(box, 1, 10);
    send(box, 1, std::size_t{64} << 10);
    MessageBatch taken;
    EXPECT_EQ(box.take(taken), 2U);
    EXPECT_EQ(box.take(taken), 1U);
    EXPECT_EQ(box.take(taken), 1U);
}

// Else a client that runs for a day allocates for each batch, or has a batch that only grows.
TEST(MailboxRules, TheSameMemoryGoesRoundForEver) {
    for (const bool in_batches : {true, false}) {
        Mailbox box{{.messages = 100000, .bytes = 1000000}};
        MessageBatch filled;
        MessageBatch read;
        std::vector<Message> out;
        std::size_t capacity = 0;
        for (int turn = 0; turn < 100; ++turn) {
            fill(filled, 300, 100);
            if (turn == 0) capacity = filled.capacity();
            ASSERT_EQ(filled.capacity(), capacity) << turn;
            box.exchange(filled);
            ASSERT_TRUE(filled.empty());
            ASSERT_EQ(filled.capacity(), turn < (in_batches ? 3 : 2) ? 0 : capacity) << turn;
            // One is always under way, so that the next is not the one that was just read.
            if (turn > 0) {
                ASSERT_EQ(in_batches ? box.take(read) : box.take(out, 300), 300U);
            }
            out.clear();
        }
    }
}

TEST(MailboxRules, ABatchThatHasGrownVeryLargeIsNotKept) {
    Mailbox box{{.messages = 100000, .bytes = std::size_t{16} << 20}};
    for (const std::size_t size : {std::size_t{3} << 20, std::size_t{100} << 10}) {
        MessageBatch batch;
        fill(batch, 1, size);
        box.exchange(batch);
        std::vector<Message> out;
        ASSERT_EQ(box.take(out, 1), 1U);
        fill(batch, 1, 1);
        box.exchange(batch);
        EXPECT_EQ(batch.capacity() > 0, size < std::size_t{1} << 20) << size;
        ASSERT_EQ(box.take(out, 1), 1U);
    }
}

// What is put without a question leaves room for one more at least, and the batch not due.
TEST(BatchFillerRules, TheQuickWayGoesUpToTheMessageThatFillsTheBatch) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{64} << 10}) {
        BatchFiller filler{{.limit = {.messages = 1000000, .bytes = 1000000000}}};
        const std::vector<std::byte> bytes(size);
        std::size_t put = 0;
        while (filler.put_calmly(Fid{1}, bytes, 0))
            ++put;
        EXPECT_GE(put, 3U);
        EXPECT_EQ(filler.batch().size(), put);
        EXPECT_FALSE(filler.is_due());
        EXPECT_TRUE(filler.put(Fid{1}, bytes, 0));
        EXPECT_TRUE(filler.is_due()) << "with the next one";
    }
}

TEST(BatchFillerRules, ItIsFullWithTheLastByteOfItsLimit) {
    BatchFiller filler{{.limit = {.messages = 1000, .bytes = 1000}}};
    filler.look({.messages = 1, .bytes = 990});
    const std::vector<std::byte> bytes(10);
    filler.put(Fid{1}, std::span{bytes}.first(9), 0);
    EXPECT_FALSE(filler.is_full());
    filler.put(Fid{1}, std::span{bytes}.first(1), 0);
    EXPECT_TRUE(filler.is_full());
}

TEST(BatchFillerRules, WhoWouldBeDisconnectedIsWaitedForHere) {
    for (const SlowPolicy policy : slow_policies) {
        BatchFiller filler{{.limit = {.messages = 1, .bytes = 1000}, .when_full = policy}};
        EXPECT_EQ(filler.blocks(), !may_miss(policy));
        EXPECT_TRUE(filler.put(Fid{1}, {}, 0));
        EXPECT_EQ(filler.put(Fid{1}, {}, 0), !may_miss(policy)) << "though it is full";
        EXPECT_EQ(filler.dropped(), policy == SlowPolicy::drop ? 1U : 0U);
    }
}

} // namespace
} // namespace netio::pubsub
