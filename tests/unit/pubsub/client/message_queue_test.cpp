// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/message_queue.hpp"

#include "netio/base/time.hpp"
#include "tests/support/open_descriptors.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <poll.h>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::message_queue_test {
namespace {

using testing::ElementsAre;

constexpr std::array<std::byte, 10> ten{};

MessageBatch batch_of(std::size_t messages, std::size_t size = 10) {
    MessageBatch batch;
    const std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < messages; ++i)
        batch.append(
            {.fid = Fid{i}, .status = 1, .lost_before = 2, .is_gap = true, .bytes = bytes});
    return batch;
}

std::vector<std::uint64_t> fids_of(const MessageBatch& batch) {
    std::vector<std::uint64_t> fids;
    for (const MessageBatch::Item item : batch)
        fids.push_back(to_integer(item.fid));
    return fids;
}

TEST(MessageBatch, HasWhatWasAppendedAndWhatIsLeftOfIt) {
    MessageBatch batch;
    EXPECT_EQ(batch.bytes(), 0U);
    const std::array<std::byte, 2> two{std::byte{7}, std::byte{8}};
    batch.append({.fid = Fid{1}, .status = 3, .lost_before = 4, .bytes = ten});
    batch.append({.fid = Fid{2}, .status = 0, .lost_before = 0, .bytes = {}});
    batch.append({.fid = Fid{3}, .status = 5, .lost_before = 0, .bytes = two});
    EXPECT_EQ(batch.size(), 3U);
    EXPECT_EQ(batch.bytes(), 12U);
    EXPECT_EQ(batch[0].status, 3);
    EXPECT_EQ(batch[0].lost_before, 4U);
    batch.drop_front(2);
    EXPECT_THAT(fids_of(batch), ElementsAre(3));
    EXPECT_EQ(batch.bytes(), 2U);
    EXPECT_THAT(batch[0].bytes, ElementsAre(std::byte{7}, std::byte{8}));
    batch.drop_front(1);
    EXPECT_TRUE(batch.empty());
    EXPECT_EQ(batch.bytes(), 0U);
    const std::size_t capacity = batch.capacity();
    batch.clear();
    EXPECT_EQ(batch.capacity(), capacity) << "its memory is used again";
}

TEST(Mailbox, BatchesAreTakenInOrder) {
    Mailbox box{{.messages = 5000, .bytes = 1000000}};
    MessageBatch batch = batch_of(300);
    box.exchange(batch);
    EXPECT_TRUE(batch.empty());
    batch = batch_of(2);
    box.exchange(batch);
    EXPECT_EQ(box.load().messages, 302U);
    EXPECT_EQ(box.load().bytes, 3020U);
    MessageBatch taken;
    EXPECT_EQ(box.take(taken), 300U);
    EXPECT_EQ(taken[299].fid, Fid{299});
    EXPECT_EQ(taken[299].status, 1);
    EXPECT_EQ(taken[299].lost_before, 2U);
    EXPECT_TRUE(taken[299].is_gap);
    EXPECT_EQ(taken[299].bytes.size(), 10U);
    EXPECT_EQ(box.load().messages, 2U);
    EXPECT_EQ(box.take(taken), 2U);
    EXPECT_THAT(fids_of(taken), ElementsAre(0, 1));
    EXPECT_TRUE(box.empty());
    EXPECT_EQ(box.load().bytes, 0U);
    EXPECT_EQ(box.take(taken), 0U);
    EXPECT_TRUE(taken.empty()) << "no message is read twice";
}

TEST(Mailbox, SmallBatchesBecomeOneSoThatAFewMessagesATurnCostLittle) {
    Mailbox box{{.messages = 5000, .bytes = 1000000}};
    for (int turn = 0; turn < 100; ++turn) {
        MessageBatch batch = batch_of(2);
        box.exchange(batch);
    }
    MessageBatch taken;
    EXPECT_EQ(box.take(taken), 200U);
    EXPECT_TRUE(box.empty());
}

TEST(Mailbox, HasRoomAgainWhenHalfOfItIsFree) {
    Mailbox box{{.messages = 1200, .bytes = 100000}};
    MessageBatch batch;
    for (int i = 0; i < 4; ++i) { // too large to become one
        batch = batch_of(300);
        box.exchange(batch);
    }
    EXPECT_FALSE(box.has_room());
    box.take(batch);
    EXPECT_FALSE(box.has_room());
    box.take(batch);
    EXPECT_TRUE(box.has_room());
    batch = batch_of(1, 60000);
    box.exchange(batch);
    EXPECT_FALSE(box.has_room()) << "the limit of bytes";
}

TEST(Mailbox, MemoryThatHasBeenReadIsUsedAgainUpToHalfOfWhatMayWait) {
    constexpr std::size_t half = 500000;
    Mailbox box{{.messages = 100000, .bytes = 2 * half}};
    for (int i = 0; i < 20; ++i) {
        MessageBatch batch = batch_of(300, 100);
        box.exchange(batch);
        EXPECT_EQ(batch.capacity(), 0U);
    }
    MessageBatch taken;
    while (box.take(taken) > 0) {
    }
    const std::size_t each = batch_of(300, 100).capacity();
    std::size_t again = 0;
    for (int i = 0; i < 20; ++i) {
        MessageBatch batch = batch_of(300, 100);
        box.exchange(batch);
        again += batch.capacity();
    }
    EXPECT_LE(again, half);
    EXPECT_GT(again, half - each);
}

TEST(BatchFiller, WithTheBlockPolicyItFillsAndLosesNothing) {
    BatchFiller filler{{.limit = {.messages = 3, .bytes = 1000}}};
    EXPECT_TRUE(filler.put(Fid{1}, ten, 0));
    EXPECT_FALSE(filler.is_full());
    filler.look({.messages = 2, .bytes = 20});
    EXPECT_TRUE(filler.is_full()) << "together with the queued messages";
    EXPECT_TRUE(filler.put(Fid{1}, ten, 0)) << "it was in flight";
    EXPECT_EQ(filler.batch().size(), 2U);
    filler.look({.messages = 0, .bytes = 985});
    EXPECT_TRUE(filler.is_full()) << "the limit of bytes";
}

TEST(BatchFiller, IsDueWithManyMessagesOrManyBytes) {
    BatchFiller filler{{.limit = {.messages = 1000000, .bytes = 1000000000}}};
    std::size_t many = 0;
    for (; !filler.is_due(); ++many)
        filler.put(Fid{1}, {}, 0);
    EXPECT_GT(many, 1000U);
    filler.batch().clear();
    filler.put(Fid{1}, std::vector<std::byte>(1000000), 0);
    EXPECT_TRUE(filler.is_due());
}

// Put by put, for every limit of a batch.
TEST(BatchFiller, TheFastPathAcceptsOnlyWhatNeedsNoReport) {
    const std::vector<std::byte> bytes(100);
    for (const std::size_t limit : {1U, 2U, 3U, 50U, 1000000U}) {
        for (const std::size_t size : {0U, 1U, 100U}) {
            for (const SlowPolicy policy :
                 {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::newest}) {
                const BatchFiller::Options options{.limit = {.messages = limit, .bytes = 4 * limit},
                                                   .when_full = policy};
                BatchFiller quick{options};
                BatchFiller plain{options};
                for (std::size_t i = 0; i < 3000; ++i) {
                    if (i % 1000 == 999) {
                        quick.batch().clear();
                        plain.batch().clear();
                        const Mailbox::Load load{.messages = i / 1000, .bytes = i / 1000};
                        quick.look(load);
                        plain.look(load);
                    }
                    const std::span<const std::byte> message{bytes.data(), size};
                    const bool put = plain.put(Fid{i % 3}, message, 0);
                    if (quick.put_fast(Fid{i % 3}, message, 0)) {
                        ASSERT_TRUE(put && !plain.is_full() && !plain.is_due());
                        const MessageBatch& all = plain.batch();
                        ASSERT_EQ(all[all.size() - 1].lost_before, 0U);
                    } else {
                        ASSERT_EQ(quick.put(Fid{i % 3}, message, 0), put);
                    }
                    ASSERT_EQ(quick.batch().size(), plain.batch().size());
                    ASSERT_EQ(quick.batch().bytes(), plain.batch().bytes());
                }
            }
        }
    }
}

TEST(MessageBatch, OneThatWasMovedFromIsEmptyAndMayBeFilled) {
    MessageBatch batch = batch_of(300);
    batch.drop_front(7);
    MessageBatch other = std::move(batch);
    EXPECT_TRUE(batch.empty()); // NOLINT: that is what it says
    EXPECT_EQ(batch.bytes(), 0U);
    EXPECT_EQ(other.size(), 293U);
    const std::array<std::byte, 3> bytes{};
    batch.append({.fid = Fid{5}, .bytes = bytes});
    other = std::move(batch);
    ASSERT_EQ(other.size(), 1U);
    EXPECT_EQ(other[0].fid, Fid{5});
    EXPECT_EQ(other[0].bytes.size(), 3U);
}

TEST(BatchFiller, DropsAreReportedWithTheNextMessageOfTheFid) {
    BatchFiller filler{{.limit = {.messages = 1, .bytes = 1000}, .when_full = SlowPolicy::drop}};
    EXPECT_TRUE(filler.put(Fid{1}, ten, 0));
    EXPECT_FALSE(filler.put(Fid{1}, ten, 0));
    EXPECT_FALSE(filler.put(Fid{2}, ten, 0));
    EXPECT_FALSE(filler.put(Fid{1}, ten, 0));
    for (const auto& [fid, lost] : {std::pair{1U, 2U}, {1U, 0U}, {2U, 1U}, {2U, 0U}}) {
        filler.batch().clear(); // handed over, and read
        ASSERT_TRUE(filler.put(Fid{fid}, ten, 7));
        EXPECT_EQ(filler.batch()[0].lost_before, lost) << "reported once";
        EXPECT_EQ(filler.batch()[0].status, 7);
    }
}

TEST(BatchFiller, ReportsLossesWithTheNextMessageOfTheFidOrAtTheEnd) {
    BatchFiller filler{{.limit = {.messages = 2, .bytes = 1000}, .when_full = SlowPolicy::drop}};
    filler.add_lost(Fid{1}, 7);
    filler.add_lost(Fid{2}, 5);
    EXPECT_FALSE(filler.put_fast(Fid{3}, ten, 0)) << "a loss must be reported first";
    EXPECT_TRUE(filler.put(Fid{1}, ten, 0));
    EXPECT_EQ(filler.batch()[0].lost_before, 7U);
    EXPECT_TRUE(filler.put(Fid{1}, ten, 0));
    EXPECT_EQ(filler.batch()[1].lost_before, 0U);
    EXPECT_FALSE(filler.put(Fid{2}, ten, 0));
    filler.put_rest();
    ASSERT_EQ(filler.batch().size(), 3U) << "also in a full batch";
    EXPECT_TRUE(filler.batch()[2].is_gap);
    EXPECT_EQ(filler.batch()[2].fid, Fid{2});
    EXPECT_EQ(filler.batch()[2].lost_before, 6U);
    filler.put_rest();
    EXPECT_EQ(filler.batch().size(), 3U) << "once";
}

// For each fid, the messages taken and those reported missing are the messages put, in order.
class FidChecker {
  public:
    std::uint64_t next_put(Fid fid) { return put_[fid]++; }
    void take(const MessageBatch::Item& item) {
        std::uint64_t& taken = taken_[item.fid];
        taken += item.lost_before;
        lost_ += item.lost_before;
        if (item.is_gap) return;
        ASSERT_EQ(item.bytes.size(), sizeof taken);
        ASSERT_EQ(std::memcmp(item.bytes.data(), &taken, sizeof taken), 0) << to_string(item.fid);
        ++taken;
    }
    void expect_complete() const { EXPECT_EQ(taken_, put_); }
    std::uint64_t lost() const { return lost_; }

  private:
    std::map<Fid, std::uint64_t> put_;
    std::map<Fid, std::uint64_t> taken_;
    std::uint64_t lost_ = 0;
};

TEST(BatchFiller, EachMessageIsTakenOrReportedMissingInOrder) {
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::newest}) {
        std::mt19937 random{4711};
        const Mailbox::Load limit{.messages = 7,
                                  .bytes = 2000}; // ConflationStore counts 128 more each
        BatchFiller filler{{.limit = limit, .when_full = policy}};
        Mailbox box{limit};
        FidChecker checker;
        std::uint64_t puts = 0;
        const auto hand_over = [&] {
            do {
                if (!filler.batch().empty()) box.exchange(filler.batch());
                filler.look(box.load());
            } while (!filler.batch().empty());
        };
        const auto read = [&] {
            MessageBatch batch;
            box.take(batch);
            for (const MessageBatch::Item item : batch)
                checker.take(item);
        };
        for (int step = 0; step < 20000 && !testing::Test::HasFatalFailure(); ++step) {
            const auto what = random() % 100;
            if (what < 80) {
                const Fid fid{random() % 20};
                const std::uint64_t number = checker.next_put(fid);
                const auto bytes = std::as_bytes(std::span{&number, 1});
                ++puts;
                if (!filler.put_fast(fid, bytes, 0)) filler.put(fid, bytes, 0);
            } else if (what < 95) {
                hand_over();
            } else {
                read();
            }
        }
        EXPECT_EQ(filler.dropped() > 0, policy != SlowPolicy::block);
        filler.put_rest();
        if (!filler.batch().empty()) box.exchange(filler.batch());
        while (!box.empty())
            read();
        checker.expect_complete();
        EXPECT_EQ(checker.lost(), filler.dropped());
        EXPECT_GT(puts, 10000U);
    }
}

TEST(BatchFiller, TheNewestOfEachFidIsKeptUntilThereIsRoom) {
    BatchFiller filler{{.limit = {.messages = 1, .bytes = 1000}, .when_full = SlowPolicy::newest}};
    EXPECT_TRUE(filler.put(Fid{1}, ten, 1));
    for (std::uint8_t status = 2; status <= 4; ++status) {
        EXPECT_FALSE(filler.put(Fid{1}, ten, status));
        EXPECT_FALSE(filler.put(Fid{2}, ten, status));
    }
    EXPECT_TRUE(filler.keeps());
    EXPECT_EQ(filler.dropped(), 4U);
    for (const auto& [fid, lost] : {std::pair{1U, 2U}, {2U, 2U}}) {
        filler.batch().clear(); // handed over, and read
        filler.look({});
        ASSERT_EQ(filler.batch().size(), 1U);
        EXPECT_EQ(filler.batch()[0].fid, Fid{fid});
        EXPECT_EQ(filler.batch()[0].status, 4) << "the last message";
        EXPECT_EQ(filler.batch()[0].lost_before, lost);
    }
    EXPECT_FALSE(filler.keeps());
}

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

TEST(MailboxRules, LargeMessagesAreNotCopiedIntoAQueuedBatch) {
    Mailbox box{{.messages = 1000, .bytes = std::size_t{1} << 20}};
    send(box, 2, std::size_t{64} << 10);
    send(box, 1, 10);
    send(box, 1, std::size_t{64} << 10);
    MessageBatch taken;
    EXPECT_EQ(box.take(taken), 2U);
    EXPECT_EQ(box.take(taken), 1U);
    EXPECT_EQ(box.take(taken), 1U);
}

// Otherwise a subscriber that runs for a day would allocate for each batch, or have an ever-growing
// batch.
TEST(MailboxRules, TheSameMemoryIsReused) {
    Mailbox box{{.messages = 100000, .bytes = 1000000}};
    MessageBatch filled;
    MessageBatch read;
    std::size_t capacity = 0;
    for (int turn = 0; turn < 100; ++turn) {
        fill(filled, 300, 100);
        if (turn == 0) capacity = filled.capacity();
        ASSERT_EQ(filled.capacity(), capacity) << turn;
        box.exchange(filled);
        ASSERT_TRUE(filled.empty());
        ASSERT_EQ(filled.capacity(), turn < 3 ? 0 : capacity) << turn;
        // One batch is always in flight, so the next one is not the batch that was just read.
        if (turn > 0) {
            ASSERT_EQ(box.take(read), 300U);
        }
    }
}

TEST(MailboxRules, ABatchThatHasGrownVeryLargeIsNotKept) {
    for (const std::size_t size : {std::size_t{3} << 20, std::size_t{100} << 10}) {
        Mailbox box{{.messages = 100000, .bytes = std::size_t{16} << 20}};
        MessageBatch batch;
        MessageBatch read;
        for (const std::size_t each : {size, std::size_t{1}}) {
            fill(batch, 1, each);
            box.exchange(batch);
            ASSERT_EQ(batch.capacity(), 0U);
            ASSERT_EQ(box.take(read), 1U); // the second time, the memory of the first is free
        }
        fill(batch, 1, 1);
        box.exchange(batch);
        EXPECT_EQ(batch.capacity() > 0, size < std::size_t{1} << 20) << size;
    }
}

// After put_fast() there is room for at least one more message, and the batch is not due.
TEST(BatchFillerRules, TheFastPathStopsBeforeTheBatchIsDue) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{64} << 10}) {
        BatchFiller filler{{.limit = {.messages = 1000000, .bytes = 1000000000}}};
        const std::vector<std::byte> bytes(size);
        std::size_t put = 0;
        while (filler.put_fast(Fid{1}, bytes, 0))
            ++put;
        EXPECT_GE(put, 3U);
        EXPECT_EQ(filler.batch().size(), put);
        EXPECT_FALSE(filler.is_due());
        EXPECT_TRUE(filler.put(Fid{1}, bytes, 0));
        EXPECT_TRUE(filler.is_due()) << "with the next message";
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

TEST(BatchFillerRules, TheDisconnectPolicyBlocksHere) {
    for (const SlowPolicy policy : slow_policies) {
        BatchFiller filler{{.limit = {.messages = 1, .bytes = 1000}, .when_full = policy}};
        EXPECT_EQ(filler.blocks(), !may_drop(policy));
        EXPECT_TRUE(filler.put(Fid{1}, {}, 0));
        EXPECT_EQ(filler.put(Fid{1}, {}, 0), !may_drop(policy)) << "also in a full batch";
        EXPECT_EQ(filler.dropped(), policy == SlowPolicy::drop ? 1U : 0U);
    }
}

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;

constexpr milliseconds none{0};

class Queue : public testing::Test {
  protected:
    void make(SlowPolicy when_full, std::size_t messages) {
        queue = std::make_unique<MessageQueue>(
            BatchFiller::Options{.limit = {.messages = messages, .bytes = 1 << 20},
                                 .when_full = when_full},
            [this] { ++went_on; });
    }
    bool put(std::uint64_t number, Fid fid = Fid{1}) {
        const std::array bytes{static_cast<std::byte>(number)};
        return queue->put(fid, bytes, 0);
    }
    // The numbers of the queued messages, with `-` and the number of messages missing before each.
    std::vector<std::string> take() {
        MessageBatch batch;
        queue->poll(batch, none);
        std::vector<std::string> taken;
        for (const MessageBatch::Item message : batch) {
            taken.push_back(std::to_string(static_cast<int>(message.bytes.front())));
            if (message.lost_before > 0) taken.back() += " -" + std::to_string(message.lost_before);
        }
        return taken;
    }
    bool is_readable() const {
        pollfd watched{.fd = queue->pollable_fd(), .events = POLLIN, .revents = 0};
        return ::poll(&watched, 1, 0) == 1;
    }

    std::unique_ptr<MessageQueue> queue;
    int went_on = 0;
};

TEST_F(Queue, MessagesAreVisibleAfterTheTurn) {
    make(SlowPolicy::block, 10);
    EXPECT_TRUE(put(1));
    EXPECT_TRUE(put(2));
    EXPECT_THAT(take(), IsEmpty());
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    EXPECT_EQ(went_on, 0) << "no publisher was stopped";
}

TEST_F(Queue, ItsDescriptorIsReadableUntilTheLastOneHasBeenTaken) {
    make(SlowPolicy::block, 10);
    EXPECT_FALSE(is_readable());
    put(1);
    put(2);
    EXPECT_FALSE(is_readable());
    queue->hand_over();
    EXPECT_TRUE(is_readable());
    put(3);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("1", "2", "3"));
    EXPECT_FALSE(is_readable());
    EXPECT_THAT(take(), IsEmpty());
    put(4);
    queue->hand_over();
    EXPECT_TRUE(is_readable());
}

TEST_F(Queue, ThatIsFullStopsUntilItHasBeenTakenAndThenOnce) {
    make(SlowPolicy::block, 4);
    for (std::uint64_t number = 1; number < 4; ++number)
        EXPECT_TRUE(put(number));
    EXPECT_FALSE(put(4)) << "the queue is full";
    EXPECT_FALSE(put(5)) << "a full queue still accepts messages";
    EXPECT_EQ(went_on, 0);
    EXPECT_THAT(take(), ElementsAre("1", "2", "3", "4", "5"))
        << "put() has handed over the messages";
    EXPECT_EQ(went_on, 1);
    EXPECT_THAT(take(), IsEmpty());
    EXPECT_EQ(went_on, 1) << "once";
    EXPECT_TRUE(put(6));
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), ElementsAre("6"));
    EXPECT_EQ(went_on, 1);
}

// Free space is detected in the next turn, except once within each turn.
TEST_F(Queue, WithTheDropPolicyItPollsForRoomOncePerTurn) {
    make(SlowPolicy::drop, 2);
    put(1);
    put(2);
    queue->hand_over();
    EXPECT_TRUE(put(3)) << "no publisher is blocked";
    EXPECT_EQ(queue->dropped(), 1U);
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    put(4);
    EXPECT_EQ(queue->dropped(), 2U) << "it has polled in this turn";
    EXPECT_TRUE(queue->hand_over());
    put(5);
    EXPECT_EQ(queue->dropped(), 2U);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("5 -2"));
    EXPECT_EQ(went_on, 0);
}

TEST_F(Queue, WithTheDropPolicyItFindsRoomWithinATurn) {
    make(SlowPolicy::drop, 2);
    put(1);
    put(2);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    put(3);
    put(4);
    EXPECT_EQ(queue->dropped(), 0U);
    put(5);
    EXPECT_EQ(queue->dropped(), 1U) << "two messages not yet handed over fill it";
}

TEST_F(Queue, ConflatedMessagesArriveWhenThereIsSpace) {
    make(SlowPolicy::newest, 2);
    put(1);
    put(2);
    EXPECT_TRUE(queue->hand_over());
    put(3);
    put(4);
    put(5, Fid{2});
    EXPECT_EQ(queue->dropped(), 1U) << "all but the last message";
    EXPECT_TRUE(queue->hand_over()) << "no publisher is blocked";
    EXPECT_EQ(went_on, 0);
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    EXPECT_EQ(went_on, 1) << "to hand over the conflated messages";
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), ElementsAre("4 -1", "5"));
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), IsEmpty());
}

TEST_F(Queue, AWaitingReaderIsWokenByAMessageAndByTheEnd) {
    make(SlowPolicy::block, 10);
    MessageBatch batch;
    const auto wait = [this, &batch] { return queue->poll(batch, seconds{60}); };
    const TimePoint begin = Clock::now();
    std::future<std::size_t> woken = std::async(std::launch::async, wait);
    put(1);
    queue->hand_over();
    EXPECT_EQ(woken.get(), 1U);
    EXPECT_LT(Clock::now() - begin, seconds{40}) << "not only after the time limit";
    woken = std::async(std::launch::async, wait);
    queue->add_lost(Fid{7}, 3);
    EXPECT_EQ(queue->end(), 3U);
    EXPECT_EQ(woken.get(), 1U);
    EXPECT_TRUE(batch[0].is_gap);
    EXPECT_EQ(batch[0].lost_before, 3U);
    EXPECT_EQ(queue->poll(batch, seconds{60}), 0U);
    EXPECT_LT(Clock::now() - begin, seconds{50}) << "the queue has ended";
}

TEST_F(Queue, AReaderMayBeWokenWithoutAMessage) {
    make(SlowPolicy::block, 10);
    MessageBatch batch;
    const TimePoint begin = Clock::now();
    queue->wake();
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(queue->poll(batch, seconds{60}), 0U);
    EXPECT_LT(Clock::now() - begin, seconds{40});
    EXPECT_FALSE(is_readable());
    EXPECT_EQ(queue->poll(batch, milliseconds{1}), 0U) << "once";
    queue->wake();
    put(1);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("1"));
    EXPECT_FALSE(is_readable());
}

TEST_F(Queue, LeavesNoDescriptorOpen) {
    const std::set<int> before = netio::test::open_descriptors();
    make(SlowPolicy::block, 10);
    EXPECT_NE(netio::test::open_descriptors(), before);
    queue.reset();
    EXPECT_EQ(netio::test::open_descriptors(), before);
}

} // namespace
} // namespace netio::pubsub::message_queue_test
