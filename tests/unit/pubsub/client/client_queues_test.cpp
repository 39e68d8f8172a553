// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_queues.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub::client_queues_test {
namespace {

class CoalescedTasks : public testing::Test {
  protected:
    bool post(std::function<void()> task) {
        if (!takes) return false;
        waiting.push_back(std::move(task));
        return true;
    }
    void run_first() {
        const std::function<void()> first = std::move(waiting.front());
        waiting.pop_front();
        first();
    }

    bool takes = true; // whether a posted task is accepted
    std::deque<std::function<void()>> waiting;
    int runs = 0;
    std::function<void()> at_run;
    CoalescedTask coalesced{[this](std::function<void()> task) { return post(std::move(task)); },
                            [this] {
                                ++runs;
                                if (at_run) at_run();
                            }};
};

TEST_F(CoalescedTasks, WaitOnceHoweverOftenTheyAreAskedFor) {
    for (int i = 0; i < 3; ++i)
        coalesced.request();
    EXPECT_EQ(waiting.size(), 1U);
    run_first();
    EXPECT_EQ(runs, 1);
    coalesced.request();
    EXPECT_EQ(waiting.size(), 1U) << "a new task";
}

// The running task may not see later work.
TEST_F(CoalescedTasks, AskedForWhileTheyRunAreRunOnceMore) {
    at_run = [this] {
        coalesced.request();
        coalesced.request();
    };
    coalesced.request();
    run_first();
    EXPECT_EQ(waiting.size(), 1U);
    at_run = {};
    run_first();
    EXPECT_EQ(runs, 2);
    EXPECT_TRUE(waiting.empty());
}

TEST_F(CoalescedTasks, ThatCouldNotBePostedMayBeAskedForAgain) {
    takes = false;
    coalesced.request();
    takes = true;
    coalesced.request();
    EXPECT_EQ(waiting.size(), 1U);
}

TEST_F(CoalescedTasks, KeepWhatTheyAreForUntilTheyHaveRun) {
    auto needed = std::make_shared<int>(0);
    const std::weak_ptr<int> there = needed;
    bool was_there = false;
    at_run = [&] { was_there = !there.expired(); };
    coalesced.request(std::move(needed));
    EXPECT_FALSE(there.expired());
    run_first();
    EXPECT_TRUE(was_there);
    EXPECT_TRUE(there.expired());
}

struct Item {
    int number = 0;
    std::vector<std::byte> bytes;
};
using Box = ClientSendQueue<Item>;

constexpr auto never = [] { return false; };

TEST(ClientSendQueue, DrainsInOrderAndContinuesWhereItWasBlocked) {
    Box box{1 << 20};
    for (int i = 0; i < 5; ++i)
        ASSERT_EQ(box.put({.number = i, .bytes = {}}), Status::ok);
    std::vector<int> sent;
    const auto two = [&](const Item& item) {
        if (sent.size() == 2) return false;
        sent.push_back(item.number);
        return true;
    };
    EXPECT_EQ(box.drain(two, never), Box::Drained::blocked);
    EXPECT_FALSE(box.empty());
    const auto all = [&](const Item& item) { return sent.push_back(item.number), true; };
    EXPECT_EQ(box.drain(all, never), Box::Drained::all);
    EXPECT_EQ(sent, (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(box.empty());
}

// Other threads put items as fast as the loop sends; the turn ends nevertheless.
TEST(ClientSendQueue, EndsWithTheTurnDespiteNewItems) {
    Box box{1 << 20};
    ASSERT_EQ(box.put({.number = 0, .bytes = {}}), Status::ok);
    int sent = 0;
    const auto send = [&](const Item& item) {
        EXPECT_EQ(item.number, sent);
        ++sent;
        return sent > 1000 || box.put({.number = sent, .bytes = {}}) == Status::ok;
    };
    for (int turn = 1; turn <= 10; ++turn) {
        int left = 7;
        EXPECT_EQ(box.drain(send, [&] { return --left == 0; }), Box::Drained::time_is_up);
        EXPECT_EQ(sent, turn * 7);
    }
}

TEST(ClientSendQueue, HasALimitThatCountsWhatIsBeingSentAndTakesOneInAnyCase) {
    Box box{1};
    ASSERT_EQ(box.put({.number = 0, .bytes = std::vector<std::byte>(100)}), Status::ok);
    EXPECT_EQ(box.put({.number = 1, .bytes = {}}), Status::again);
    const auto in_between = [&](const Item&) {
        EXPECT_EQ(box.put({.number = 1, .bytes = {}}), Status::again);
        return true;
    };
    EXPECT_EQ(box.drain(in_between, never), Box::Drained::all);
    EXPECT_EQ(box.put({.number = 1, .bytes = {}}), Status::ok);
    box.close();
    EXPECT_EQ(box.put({.number = 2, .bytes = {}}), Status::closed);
}

TEST(ClientSendQueue, TakesAsMuchAsExactlyItsLimitAndAgainAsMuchAsHasBeenSent) {
    Box box{2 * sizeof(Item) + 30};
    const auto put = [&box](std::size_t bytes) {
        return box.put({.number = 0, .bytes = std::vector<std::byte>(bytes)});
    };
    EXPECT_EQ(put(10), Status::ok);
    EXPECT_EQ(put(21), Status::again);
    EXPECT_EQ(put(20), Status::ok);
    EXPECT_EQ(put(0), Status::again);
    bool is_first = true;
    const auto send_one = [&](const Item&) { return std::exchange(is_first, false); };
    EXPECT_EQ(box.drain(send_one, never), Box::Drained::blocked);
    EXPECT_EQ(put(11), Status::again);
    EXPECT_EQ(put(10), Status::ok);
}

using testing::ElementsAre;
using testing::IsEmpty;
using Drained = ClientPublishQueue::Drained;

constexpr std::size_t head = sizeof(Publication);

// The capacity, and the sent messages.
class ClientPublishQueueTest : public testing::Test {
  protected:
    using Sent = std::pair<std::uint64_t, int>;

    // The status of the message is its number.
    Status put(std::uint64_t fid, int number, std::size_t size = 0) {
        return box.put({.fid = Fid{fid},
                        .status = static_cast<std::uint8_t>(number),
                        .bytes = std::vector<std::byte>(size)});
    }
    Drained drain() {
        return box.drain(
            [this](const Publication& item) {
                ++attempts;
                if (stopped.count(item.fid) > 0 || room == 0) return false;
                --room;
                sent.emplace_back(to_integer(item.fid), item.status);
                return true;
            },
            never);
    }
    // Fid 1 is blocked with `bytes` queued bytes.
    void hold_up(std::size_t bytes) {
        stopped.insert(Fid{1});
        ASSERT_EQ(put(1, 0, bytes - head), Status::ok);
        ASSERT_EQ(drain(), Drained::blocked);
    }

    static constexpr std::size_t limit = 128 * 1024;
    ClientPublishQueue box{limit};
    std::set<Fid> stopped;
    int room = 1'000'000;
    int attempts = 0;
    std::vector<Sent> sent;
};

TEST_F(ClientPublishQueueTest, ABlockedFidDoesNotBlockOthers) {
    stopped = {Fid{1}};
    for (int i = 0; i < 3; ++i)
        for (const std::uint64_t fid : {1U, 2U})
            ASSERT_EQ(put(fid, i), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    EXPECT_THAT(sent, ElementsAre(Sent{2, 0}, Sent{2, 1}, Sent{2, 2}));
    EXPECT_EQ(attempts, 4) << "messages after a refused one of the same fid are not tried";
    ASSERT_EQ(put(2, 3), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    EXPECT_EQ(attempts, 5) << "nor is this one, before there may be room";
    EXPECT_EQ(sent.size(), 4U);
}

TEST_F(ClientPublishQueueTest, WhatHasWaitedIsInOrderWithWhatCameLater) {
    stopped = {Fid{1}};
    ASSERT_EQ(put(1, 0), Status::ok);
    ASSERT_EQ(put(1, 1), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    stopped.clear();
    ASSERT_EQ(put(1, 2), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    EXPECT_THAT(sent, IsEmpty()) << "it would overtake";
    ASSERT_EQ(put(1, 3), Status::ok);
    box.wake();
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_THAT(sent, ElementsAre(Sent{1, 0}, Sent{1, 1}, Sent{1, 2}, Sent{1, 3}));
}

TEST_F(ClientPublishQueueTest, BlockedFidsShareTheRoomEqually) {
    room = 0;
    for (int i = 0; i < 4; ++i)
        for (const std::uint64_t fid : {1U, 2U, 3U})
            ASSERT_EQ(put(fid, i), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    for (int i = 0; i < 12; ++i) {
        room = 1;
        box.wake();
        EXPECT_EQ(drain(), i < 11 ? Drained::blocked : Drained::all);
    }
    std::map<std::uint64_t, int> next;
    for (std::size_t at = 0; at < sent.size(); ++at) {
        EXPECT_EQ(sent[at].second, next[sent[at].first]++);
        EXPECT_EQ(sent[at].second, static_cast<int>(at / 3)) << "no fid has two in a row";
    }
    EXPECT_EQ(sent.size(), 12U);
}

TEST_F(ClientPublishQueueTest, EndsWithItsTimeAndContinuesWithTheNextBlockedFid) {
    room = 0;
    for (std::uint64_t fid = 1; fid <= 5; ++fid)
        ASSERT_EQ(put(fid, 0), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    box.wake();
    const auto refuse = [](const Publication&) { return false; };
    for (int turn = 0; turn < 4; ++turn)
        EXPECT_EQ(box.drain(refuse, [] { return true; }), Drained::time_is_up);
    room = 5;
    EXPECT_EQ(drain(), Drained::blocked);
    EXPECT_THAT(sent, ElementsAre(Sent{5, 0})) << "the others were tried";
}

TEST_F(ClientPublishQueueTest, TakesExactlyTheHalfWhileNothingWaits) {
    ASSERT_EQ(put(1, 0, limit / 2 - 2 * head), Status::ok);
    EXPECT_EQ(put(2, 0, 1), Status::again);
    EXPECT_EQ(put(2, 0), Status::ok);
    EXPECT_EQ(put(3, 0), Status::again);
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_EQ(put(1, 0, 2 * limit), Status::ok) << "one message in any case";
    box.close();
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_EQ(put(1, 0), Status::closed);
}

TEST_F(ClientPublishQueueTest, AFidGetsItsPartOfTheOtherHalfWhileSomeAreBlocked) {
    hold_up(limit / 2);
    // x + x <= (half - 2 x) / parts
    constexpr std::size_t each = limit / 2 / (2 * ClientPublishQueue::parts + 2);
    EXPECT_EQ(put(2, 0, each - head), Status::ok);
    EXPECT_EQ(put(2, 1, each + 8 - head), Status::again);
    EXPECT_EQ(put(2, 1, each - head), Status::ok);
    EXPECT_EQ(put(2, 2), Status::again);
    EXPECT_EQ(put(1, 1), Status::ok) << "one message in any case, also of a blocked fid";
    EXPECT_EQ(put(1, 2, each * 2), Status::again);
    EXPECT_EQ(put(3, 0, limit / 2), Status::again) << "all of it is the limit";
    EXPECT_EQ(put(3, 0, limit / 4), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    EXPECT_THAT(sent, ElementsAre(Sent{2, 0}, Sent{2, 1}, Sent{3, 0}));
    EXPECT_EQ(put(2, 3, each - head), Status::ok) << "the same amount again";
}

TEST_F(ClientPublishQueueTest, TakesAllOfTheLimitAndNothingMore) {
    hold_up(limit / 2);
    ASSERT_EQ(put(2, 0, limit / 2 - 2 * head), Status::ok);
    EXPECT_EQ(put(3, 0, 1), Status::again);
    EXPECT_EQ(put(3, 0), Status::ok);
    EXPECT_EQ(put(4, 0), Status::again);
}

TEST_F(ClientPublishQueueTest, WhenNothingWaitsAnyMoreTheOtherHalfIsFreeForTheNextTime) {
    hold_up(limit / 2);
    ASSERT_EQ(put(1, 1, 1000), Status::ok);
    ASSERT_EQ(put(2, 0, 1000), Status::ok);
    stopped.clear();
    box.wake();
    EXPECT_EQ(drain(), Drained::all);
    ASSERT_EQ(put(2, 1, limit / 2 - head), Status::ok);
    EXPECT_EQ(put(3, 0), Status::again) << "no fid is blocked";
    EXPECT_EQ(drain(), Drained::all);
    hold_up(limit / 2);
    EXPECT_EQ(put(1, 1, 1000), Status::ok);
    EXPECT_EQ(put(2, 2, 1000), Status::ok);
}

// Like the links of a detector: each puts as much as possible before the queue is drained.
TEST_F(ClientPublishQueueTest, ManyBlockedFidsLeaveRoomForTheNext) {
    ClientPublishQueue large{std::size_t{16} << 20};
    for (std::uint64_t fid = 1; fid <= 200; ++fid) {
        int count = 0;
        while (large.put({.fid = Fid{fid}, .bytes = std::vector<std::byte>(1000)}) == Status::ok)
            ++count;
        ASSERT_GE(count, 1) << fid;
        const auto stop_all = [](const Publication&) { return false; };
        ASSERT_EQ(large.drain(stop_all, never), Drained::blocked);
    }
}

TEST_F(ClientPublishQueueTest, DiscardRemovesEverything) {
    stopped = {Fid{1}, Fid{2}};
    for (int i = 0; i < 3; ++i)
        for (const std::uint64_t fid : {1U, 2U, 3U})
            ASSERT_EQ(put(fid, i), Status::ok);
    EXPECT_EQ(drain(), Drained::blocked);
    ASSERT_EQ(put(3, 3), Status::ok);
    EXPECT_EQ(box.discard(), 7U);
    EXPECT_EQ(box.discard(), 0U);
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_EQ(sent.size(), 3U);
}

// Compared with a model that has a queue per fid: an accepted message is sent once, in order, and
// immediately if its fid is not blocked.
TEST_F(ClientPublishQueueTest, SendsAcceptedMessagesInOrder) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random{seed};
        ClientPublishQueue any{4000};
        std::array<std::uint8_t, 6> put_next{};
        std::array<std::uint8_t, 6> sent_next{};
        std::array<bool, 6> is_stopped{};
        std::array<bool, 6> waits{};
        const auto send = [&](const Publication& item) {
            const auto fid = to_integer(item.fid);
            if (is_stopped[fid]) return waits[fid] = true, false;
            EXPECT_EQ(item.status, sent_next[fid]);
            ++sent_next[fid];
            return true;
        };
        for (int step = 0; step < 500; ++step) {
            const std::size_t fid = random() % 6;
            const unsigned what = random() % 8;
            if (what < 4) {
                const Status status = any.put({.fid = Fid{fid},
                                               .status = put_next[fid],
                                               .bytes = std::vector<std::byte>(random() % 200)});
                if (status == Status::ok) ++put_next[fid];
            } else if (what == 4) {
                is_stopped[fid] = !is_stopped[fid];
            } else if (what == 5) {
                any.wake();
                waits = {};
            } else {
                int left = what == 6 ? static_cast<int>(random() % 5) : 1'000'000;
                if (any.drain(send, [&left] { return left-- == 0; }) == Drained::time_is_up)
                    continue;
                for (std::size_t each = 0; each < 6; ++each) {
                    const bool may_wait = waits[each] || is_stopped[each];
                    EXPECT_TRUE(may_wait || sent_next[each] == put_next[each]) << each;
                }
            }
        }
        is_stopped = {};
        any.wake();
        EXPECT_EQ(any.drain(send, never), Drained::all);
        EXPECT_EQ(sent_next, put_next);
        EXPECT_EQ(any.put({.fid = Fid{0}, .bytes = std::vector<std::byte>(1900)}), Status::ok)
            << "all counters are 0 again";
    }
}

TEST_F(ClientPublishQueueTest, APutThatWaitsGoesOnWhenThereIsRoom) {
    ASSERT_EQ(put(1, 0, limit / 2 - head), Status::ok);
    ASSERT_EQ(put(2, 1), Status::again);
    const auto waiting = std::async(std::launch::async, [this] {
        return box.put({.fid = Fid{2}, .status = 1, .bytes = {}}, TimePoint::max());
    });
    while (box.putters() == 0)
        std::this_thread::yield();
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_EQ(waiting.wait_for(std::chrono::minutes{1}), std::future_status::ready);
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_THAT(sent, ElementsAre(Sent{1, 0}, Sent{2, 1}));
}

TEST_F(ClientPublishQueueTest, APutThatWaitsEndsInTimeOrWithTheBox) {
    ASSERT_EQ(put(1, 0, limit / 2 - head), Status::ok);
    const auto begin = Clock::now();
    EXPECT_EQ(box.put({.fid = Fid{2}, .bytes = {}}, begin + std::chrono::milliseconds{20}),
              Status::again);
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds{20});
    auto waiting = std::async(std::launch::async, [this] {
        return box.put({.fid = Fid{2}, .bytes = {}}, TimePoint::max());
    });
    box.close();
    EXPECT_EQ(waiting.get(), Status::closed);
}

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

TEST(PendingSubscribes, ASubscriptionIsAcceptedWhenAllItsFidsAre) {
    PendingSubscribes<int> pending;
    const std::array fids{range(1, 9), range(20, 29)};
    pending.add(fids, 1);
    EXPECT_THAT(pending.accept(range(0, 5)), IsEmpty());
    EXPECT_THAT(pending.accept(range(20, 29)), IsEmpty());
    EXPECT_THAT(pending.accept(range(6, 9)), ElementsAre(1));
    EXPECT_THAT(pending.take_all(), IsEmpty());
}

TEST(PendingSubscribes, ItIsRefusedWithTheFirstOfItsFidsThatIs) {
    PendingSubscribes<int> pending;
    const std::array fids{range(1, 9)};
    pending.add(fids, 1);
    pending.add(fids, 2);
    EXPECT_THAT(pending.end(range(10, 99)), IsEmpty());
    EXPECT_THAT(pending.end(range(9, 9)), ElementsAre(1, 2));
}

TEST(PendingSubscribes, WhatIsAcceptedIsNotWaitedFor) {
    PendingSubscribes<int> pending;
    const std::array fids{range(1, 9)};
    pending.add(fids, 1);
    EXPECT_THAT(pending.accept(range(1, 5)), IsEmpty());
    EXPECT_THAT(pending.end(range(1, 5)), IsEmpty());
    EXPECT_THAT(pending.end(range(5, 6)), ElementsAre(1));
}

TEST(PendingSubscribes, ManyRangesThatAreAcceptedOneByOneAreNotLookedAtEachTime) {
    constexpr std::uint64_t count = 100'000;
    PendingSubscribes<int> pending;
    std::vector<FidRange> apart;
    for (std::uint64_t i = 0; i < count; ++i)
        apart.push_back(range(3 * i, 3 * i + 1));
    pending.add(apart, 1);
    for (std::uint64_t i = 0; i + 1 < count; ++i)
        ASSERT_THAT(pending.accept(apart[i]), IsEmpty());
    EXPECT_THAT(pending.accept(apart.back()), ElementsAre(1));
    EXPECT_LE(pending.steps(), 3 * count);
}

TEST(PendingSubscribes, ManyWhoWaitAreAnsweredOneByOneWithoutLookingAtAllOfThem) {
    constexpr int count = 65'536;
    PendingSubscribes<int> pending;
    const TimePoint now{};
    const auto fid = [](int i) {
        return range(3 * static_cast<std::uint64_t>(i), 3 * static_cast<std::uint64_t>(i));
    };
    for (int i = 0; i < count; ++i) {
        const FidRange one = fid(i);
        pending.add({&one, 1}, i, now + std::chrono::seconds{count - i});
        ASSERT_EQ(pending.next_end(), now + std::chrono::seconds{count - i});
    }
    for (int i = 0; i < count; i += 2) {
        ASSERT_THAT(pending.accept(fid(i)), ElementsAre(i));
        ASSERT_LE(pending.steps(), 4U * count) << i;
    }
    for (int i = 1; i < count; i += 4)
        ASSERT_THAT(pending.end(fid(i)), ElementsAre(i));
    EXPECT_LE(pending.steps(), 4U * count);
    EXPECT_EQ(pending.expire(now + std::chrono::seconds{count / 2}).size(), count / 8U);
}

// Otherwise a bound on the steps would prove nothing.
TEST(PendingSubscribes, WhatIsLookedAtIsCounted) {
    constexpr std::uint64_t count = 100;
    PendingSubscribes<int> pending;
    for (std::uint64_t i = 0; i < count; ++i) {
        const FidRange one = range(i, i);
        pending.add({&one, 1}, 0);
    }
    for (std::uint64_t i = 0; i < count; ++i)
        EXPECT_THAT(pending.accept(range(1000, 1000)), IsEmpty());
    EXPECT_GE(pending.steps(), count) << "at least one step each time";
    const std::size_t before = pending.steps();
    EXPECT_EQ(pending.accept(range(0, count)).size(), count);
    EXPECT_GE(pending.steps() - before, count) << "at least one step for each waiting entry";
}

// All waiting entries are in a list, and each answer is compared with each of them.
struct PlainAnswers {
    struct Entry {
        int waiter = 0;
        std::set<std::uint64_t> open;
        TimePoint end;
    };
    template <typename Has>
    std::vector<int> take(Has has_answer) {
        std::vector<int> taken;
        for (const Entry& each : waiting)
            if (has_answer(each)) taken.push_back(each.waiter);
        std::erase_if(waiting, has_answer);
        return taken;
    }
    std::vector<int> accept(const FidRange& fids) {
        for (Entry& each : waiting)
            std::erase_if(each.open, [&](std::uint64_t fid) { return contains(fids, fid); });
        return take([](const Entry& each) { return each.open.empty(); });
    }
    std::vector<int> end(const FidRange& fids) {
        return take([&](const Entry& each) {
            return std::ranges::any_of(each.open,
                                       [&](std::uint64_t fid) { return contains(fids, fid); });
        });
    }
    static bool contains(const FidRange& fids, std::uint64_t fid) {
        return fids.first <= Fid{fid} && Fid{fid} <= fids.last;
    }
    std::vector<Entry> waiting;
};

TEST(PendingSubscribes, AgreesWithALinearSearch) {
    std::mt19937_64 random{1};
    PendingSubscribes<int> pending;
    PlainAnswers plain;
    const auto draw = [&] {
        const std::uint64_t first = random() % 64;
        return range(first,
                     std::min<std::uint64_t>(63, first + (random() % 2 == 0 ? 0 : random() % 40)));
    };
    int answered = 0;
    for (int i = 0; i < 20'000; ++i) {
        const TimePoint now{std::chrono::seconds{i}};
        const FidRange fids = draw();
        switch (random() % 4) {
        case 0:
        case 1: {
            const std::array both{fids, draw()};
            PlainAnswers::Entry entry{.waiter = i,
                                      .end = now + std::chrono::seconds{random() % 40}};
            for (const FidRange& each : both)
                for (std::uint64_t fid = to_integer(each.first); fid <= to_integer(each.last);
                     ++fid)
                    entry.open.insert(fid);
            pending.add(both, i, entry.end);
            plain.waiting.push_back(std::move(entry));
            break;
        }
        case 2: {
            const std::vector<int> taken = pending.accept(fids);
            answered += static_cast<int>(taken.size());
            ASSERT_EQ(taken, plain.accept(fids));
            break;
        }
        default:
            if (random() % 4 == 0) {
                ASSERT_EQ(pending.end(fids), plain.end(fids));
            } else {
                ASSERT_EQ(pending.expire(now),
                          plain.take([&](const auto& each) { return each.end <= now; }));
            }
        }
    }
    EXPECT_GT(answered, 500);
}

TEST(PendingSubscribes, OnlyTheMiddleOfARangeIsAccepted) {
    PendingSubscribes<int> pending;
    const std::array fids{range(0, UINT64_MAX)};
    pending.add(fids, 1);
    EXPECT_THAT(pending.accept(range(5, 9)), IsEmpty());
    EXPECT_THAT(pending.end(range(5, 9)), IsEmpty());
    EXPECT_THAT(pending.accept(range(0, 4)), IsEmpty());
    EXPECT_THAT(pending.accept(range(10, UINT64_MAX)), ElementsAre(1));
}

TEST(PendingSubscribes, EachWaitsUntilItsTimeLimit) {
    PendingSubscribes<int> pending;
    const std::array fids{range(1, 9)};
    const TimePoint now{};
    EXPECT_EQ(pending.next_end(), TimePoint::max());
    pending.add(fids, 1, now + std::chrono::seconds{2});
    pending.add(fids, 2, now + std::chrono::seconds{1});
    pending.add(fids, 3);
    EXPECT_EQ(pending.next_end(), now + std::chrono::seconds{1});
    EXPECT_THAT(pending.expire(now), IsEmpty());
    EXPECT_THAT(pending.expire(now + std::chrono::seconds{1}), ElementsAre(2));
    EXPECT_THAT(pending.expire(now + std::chrono::hours{1}), ElementsAre(1));
    EXPECT_EQ(pending.next_end(), TimePoint::max());
}

TEST(PendingSubscribes, TheLimitCountsTheWaitingOnes) {
    PendingSubscribes<int> pending{2};
    const std::array fids{range(1, 9)};
    pending.add(fids, 1);
    EXPECT_FALSE(pending.is_full());
    pending.add(fids, 2);
    EXPECT_TRUE(pending.is_full());
    pending.accept(range(1, 9));
    EXPECT_FALSE(pending.is_full());
}

TEST(PendingSubscribes, TheEndAnswersAllThatWait) {
    PendingSubscribes<int> pending;
    const std::array fids{range(1, 9)};
    pending.add(fids, 1);
    EXPECT_THAT(pending.take_all(), ElementsAre(1));
}

using std::chrono::milliseconds;

TEST(WantedFids, KnowsEachFidThatAnySubscriberHas) {
    constexpr std::uint64_t fids = 12;
    std::mt19937 random{1};
    WantedFids wanted;
    std::map<std::uint64_t, std::set<std::uint64_t>> model; // by subscriber
    for (int step = 0; step < 5000; ++step) {
        const std::uint64_t subscriber = random() % 4;
        const std::uint64_t first = random() % fids;
        const std::uint64_t last = first + random() % (fids - first);
        const FidRange range{.first = Fid{first}, .last = Fid{last}};
        const bool adds = random() % 2 == 0;
        adds ? wanted.subscribe(SubscriberId{subscriber}, range)
             : wanted.unsubscribe(SubscriberId{subscriber}, range);
        for (std::uint64_t fid = first; fid <= last; ++fid)
            adds ? void(model[subscriber].insert(fid)) : void(model[subscriber].erase(fid));
        std::size_t subscribers = 0;
        std::set<std::uint64_t> all;
        for (const auto& [id, own] : model) {
            subscribers += own.empty() ? 0U : 1U;
            all.insert(own.begin(), own.end());
        }
        for (std::uint64_t fid = 0; fid < fids; ++fid)
            ASSERT_EQ(wanted.has(Fid{fid}), all.contains(fid)) << "step " << step;
        ASSERT_TRUE(wanted.wait_for_subscribers(subscribers, milliseconds{0}));
        ASSERT_FALSE(wanted.wait_for_subscribers(subscribers + 1, milliseconds{0}));
    }
    wanted.end();
    EXPECT_FALSE(wanted.wait_for_subscribers(0, milliseconds{0}));
}

} // namespace
} // namespace netio::pubsub::client_queues_test
