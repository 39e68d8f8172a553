// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/publish_queue.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub::publish_queue_test {
namespace {

constexpr auto never = [] { return false; };

using testing::ElementsAre;
using testing::IsEmpty;
using Drained = PublishQueue::Drained;

constexpr std::size_t head = sizeof(Publication);

KeptBytes block(std::size_t size) {
    return KeptBytes::copy_of(std::vector<std::byte>(size));
}

Status put_into(PublishQueue& queue, Publication item, TimePoint until = TimePoint::min()) {
    return queue.put(item, until);
}

// The capacity, and the sent messages.
class PublishQueueTest : public testing::Test {
  protected:
    using Sent = std::pair<std::uint64_t, int>;

    // The status of the message is its number.
    Status put(std::uint64_t fid, int number, std::size_t size = 0) {
        return put_into(
            box,
            {.fid = Fid{fid}, .status = static_cast<std::uint8_t>(number), .bytes = block(size)});
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
    PublishQueue box{limit};
    std::set<Fid> stopped;
    int room = 1'000'000;
    int attempts = 0;
    std::vector<Sent> sent;
};

TEST_F(PublishQueueTest, ABlockedFidDoesNotBlockOthers) {
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

TEST_F(PublishQueueTest, WhatHasWaitedIsInOrderWithWhatCameLater) {
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

TEST_F(PublishQueueTest, BlockedFidsShareTheRoomEqually) {
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

TEST_F(PublishQueueTest, EndsWithItsTimeAndContinuesWithTheNextBlockedFid) {
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

TEST_F(PublishQueueTest, TakesExactlyTheHalfWhileNothingWaits) {
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

TEST_F(PublishQueueTest, AFidGetsItsPartOfTheOtherHalfWhileSomeAreBlocked) {
    hold_up(limit / 2);
    // x + x <= (half - 2 x) / parts
    constexpr std::size_t each = limit / 2 / (2 * PublishQueue::parts + 2);
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

TEST_F(PublishQueueTest, TakesAllOfTheLimitAndNothingMore) {
    hold_up(limit / 2);
    ASSERT_EQ(put(2, 0, limit / 2 - 2 * head), Status::ok);
    EXPECT_EQ(put(3, 0, 1), Status::again);
    EXPECT_EQ(put(3, 0), Status::ok);
    EXPECT_EQ(put(4, 0), Status::again);
}

TEST_F(PublishQueueTest, WhenNothingWaitsAnyMoreTheOtherHalfIsFreeForTheNextTime) {
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
TEST_F(PublishQueueTest, ManyBlockedFidsLeaveRoomForTheNext) {
    PublishQueue large{std::size_t{16} << 20};
    for (std::uint64_t fid = 1; fid <= 200; ++fid) {
        int count = 0;
        while (put_into(large, {.fid = Fid{fid}, .bytes = block(1000)}) == Status::ok)
            ++count;
        ASSERT_GE(count, 1) << fid;
        const auto stop_all = [](const Publication&) { return false; };
        ASSERT_EQ(large.drain(stop_all, never), Drained::blocked);
    }
}

TEST_F(PublishQueueTest, DiscardRemovesEverything) {
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
TEST_F(PublishQueueTest, SendsAcceptedMessagesInOrder) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random{seed};
        PublishQueue any{4000};
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
            if (what < 2) {
                const Status status = put_into(
                    any,
                    {.fid = Fid{fid}, .status = put_next[fid], .bytes = block(random() % 200)});
                if (status == Status::ok) ++put_next[fid];
            } else if (what < 4) {
                std::vector<Publication> batch;
                auto next = put_next;
                for (std::size_t count = random() % 8; batch.size() < count;) {
                    const std::size_t any_fid = random() % 6;
                    batch.push_back({.fid = Fid{any_fid},
                                     .status = next[any_fid]++,
                                     .shares_memory = true,
                                     .bytes = block(random() % 200)});
                }
                const std::vector<Publication> all = batch;
                const auto accepted = any.put(batch, TimePoint::min());
                EXPECT_EQ(accepted.next, accepted.count == all.size() ? Status::ok : Status::again);
                for (std::size_t i = 0; i < accepted.count; ++i)
                    ++put_next[to_integer(all[i].fid)];
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
        EXPECT_EQ(put_into(any, {.fid = Fid{0}, .bytes = block(1900)}), Status::ok)
            << "all counters are 0 again";
    }
}

TEST_F(PublishQueueTest, AWaitingPutContinuesWhenThereIsSpace) {
    ASSERT_EQ(put(1, 0, limit / 2 - head), Status::ok);
    ASSERT_EQ(put(2, 1), Status::again);
    const auto waiting = std::async(std::launch::async, [this] {
        return put_into(box, {.fid = Fid{2}, .status = 1, .bytes = {}}, TimePoint::max());
    });
    while (box.putters() == 0)
        std::this_thread::yield();
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_EQ(waiting.wait_for(std::chrono::minutes{1}), std::future_status::ready);
    EXPECT_EQ(drain(), Drained::all);
    EXPECT_THAT(sent, ElementsAre(Sent{1, 0}, Sent{2, 1}));
}

TEST_F(PublishQueueTest, APutThatWaitsEndsInTimeOrWithTheBox) {
    ASSERT_EQ(put(1, 0, limit / 2 - head), Status::ok);
    const auto begin = Clock::now();
    EXPECT_EQ(put_into(box, {.fid = Fid{2}, .bytes = {}}, begin + std::chrono::milliseconds{20}),
              Status::again);
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds{20});
    auto waiting = std::async(std::launch::async, [this] {
        return put_into(box, {.fid = Fid{2}, .bytes = {}}, TimePoint::max());
    });
    box.close();
    EXPECT_EQ(waiting.get(), Status::closed);
}

TEST_F(PublishQueueTest, ABlockedMessageOfABatchReleasesItsMemory) {
    const auto memory = std::make_shared<std::vector<std::byte>>(1000);
    std::vector<Publication> batch;
    for (std::uint64_t fid = 1; fid <= 2; ++fid) {
        batch.push_back({.fid = Fid{fid},
                         .shares_memory = true,
                         .bytes = {memory, std::span{*memory}.first(10)}});
    }
    stopped.insert(Fid{1});
    EXPECT_EQ(box.put(batch, TimePoint::min()).count, 2U);
    batch.clear();
    EXPECT_EQ(drain(), Drained::blocked);
    EXPECT_EQ(memory.use_count(), 1);
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
} // namespace netio::pubsub::publish_queue_test
