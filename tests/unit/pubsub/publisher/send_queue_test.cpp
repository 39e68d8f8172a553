// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/send_queue.hpp"

#include "tests/unit/pubsub/publisher/queue_peer.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace netio::pubsub::send_queue_test {
namespace {

using test::body_limit;
using test::QueuePeer;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Frames {
    RegisteredBuffer memory{4096};
    SendQueue::Handling dropping(std::uint64_t cookie, bool continues = false) const {
        return {.cookie = Cookie{cookie}, .amount = 10, .droppable = true, .continues = continues};
    }
    void add(SendQueue& queue, const SendQueue::Handling& handling) {
        queue.add_frame(page_kind, {}, memory.slice(0, 100), handling);
    }
};

TEST(SendQueue, ReturnsEveryCookieOnceAndCountsHeldMemory) {
    QueuePeer peer;
    Frames frames;
    for (std::uint64_t i = 0; i < 3; ++i)
        frames.add(peer.queue, {.cookie = Cookie{i}, .amount = 10});
    EXPECT_EQ(peer.queue.usage().waiting, 30U);
    peer.take_one();
    EXPECT_EQ(peer.queue.usage().waiting, 20U);
    EXPECT_EQ(peer.queue.usage().posted, 10U);
    EXPECT_THAT(peer.complete_one(),
                ElementsAre(testing::Field(&SendQueue::Returned::cookie, Cookie{0})));
    EXPECT_EQ(peer.queue.usage().all(), 20U);
    const auto rest = peer.queue.take_rest(body_limit);
    ASSERT_EQ(rest.size(), 2U);
    EXPECT_EQ(rest[1].cookie, Cookie{2});
    EXPECT_EQ(peer.queue.usage().all(), 0U);
}

TEST(SendQueue, PostedMemoryIsLimitedExceptForTheFirst) {
    QueuePeer peer;
    Frames frames;
    for (std::uint64_t i = 0; i < 4; ++i)
        frames.add(peer.queue, {.cookie = Cookie{i}, .amount = 10});
    peer.take_all(0);
    EXPECT_EQ(peer.queue.usage().posted, 10U);
    peer.take_all(20);
    EXPECT_EQ(peer.queue.usage().posted, 20U);
}

TEST(SendQueue, GapsAreReportedTogetherAtTheirPosition) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    peer.queue.add_gap(Fid{2}, 3);
    peer.queue.add_gap(Fid{1}, 1);
    peer.queue.add_gap(Fid{2}, 1);
    peer.queue.add_answer(subscription_answer_kind, std::array<std::byte, 8>{});
    peer.queue.add_gap(Fid{2}, 9);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind, subscription_answer_kind, gap_kind));
    EXPECT_THAT(peer.counts,
                ElementsAre(FidCount{Fid{1}, 1}, FidCount{Fid{2}, 4}, FidCount{Fid{2}, 9}));
}

TEST(SendQueue, AGapThatGrowsWhileBeingSentIsSentCompletely) {
    QueuePeer peer;
    for (std::uint64_t i = 0; i < 300; ++i)
        peer.queue.add_gap(Fid{i}, 1);
    ASSERT_TRUE(peer.take_one());
    peer.queue.add_gap(Fid{5}, 7);
    peer.take_all();
    std::uint64_t sum = 0;
    for (const FidCount& count : peer.counts)
        sum += count.count;
    EXPECT_EQ(sum, 307U);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST(SendQueue, SplitsTotalsIntoFrames) {
    QueuePeer peer;
    constexpr std::uint64_t fids = 100000;
    peer.queue.add_totals([next = std::uint64_t{0}](std::span<FidCount> out) mutable {
        std::size_t count = 0;
        for (; count < out.size() && next < fids; ++next)
            out[count++] = {.fid = Fid{next}, .count = 1};
        return TotalsPart{.count = count, .last = next == fids};
    });
    peer.take_all();
    EXPECT_EQ(peer.under_way.size(), 4U) << "its memory has a limit";
    EXPECT_TRUE(peer.more);
    while (!peer.under_way.empty()) {
        EXPECT_THAT(peer.complete_one(), IsEmpty());
        peer.take_all();
    }
    EXPECT_EQ(peer.counts.size(), fids);
    EXPECT_FALSE(peer.more);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST(SendQueue, APartOfTheTotalsMayBeEmptyBeforeTheLast) {
    QueuePeer peer;
    peer.queue.add_totals([left = 5](std::span<FidCount> out) mutable {
        out[0] = {.fid = Fid{7}, .count = 3};
        --left;
        return TotalsPart{.count = left == 2 ? 1U : 0U, .last = left == 0};
    });
    peer.take_all();
    EXPECT_EQ(peer.kinds.size(), 5U);
    EXPECT_THAT(peer.counts, ElementsAre(FidCount{Fid{7}, 3}));
    EXPECT_FALSE(peer.more);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST(SendQueue, NoTotalsAreAFrameToo) {
    QueuePeer peer;
    peer.queue.add_totals([](std::span<FidCount>) { return TotalsPart{.count = 0, .last = true}; });
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(totals_kind));
    EXPECT_FALSE(peer.more);
}

TEST(SendQueue, PositionFramesContainTheirRequest) {
    QueuePeer peer;
    std::vector<FidCount> many;
    for (std::uint64_t fid = 0; fid < 700; ++fid)
        many.push_back({.fid = Fid{fid}, .count = fid + 1});
    peer.queue.add_positions({.extension = {.instance = 5, .request = 9}, .counts = many});
    peer.queue.add_positions({.extension = {.instance = 5, .request = 10}, .counts = {}});
    EXPECT_EQ(peer.queue.positions(), 700U);
    peer.take_all();
    EXPECT_THAT(peer.kinds, testing::Each(positions_kind));
    EXPECT_EQ(peer.kinds.size(), 4U);
    EXPECT_EQ(peer.counts, many);
    EXPECT_FALSE(peer.more);
    EXPECT_EQ(peer.queue.positions(), 0U);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST(SendQueue, ReclaimsTheLatestMessagesAndLeavesAGap) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    frames.add(peer.queue, frames.dropping(2));
    peer.queue.add_answer(subscription_answer_kind, std::array<std::byte, 8>{});
    auto taken = peer.queue.take_back();
    EXPECT_THAT(taken.cookies, ElementsAre(Cookie{2}));
    taken.gap->add(Fid{7}, 2);
    taken = peer.queue.take_back();
    EXPECT_THAT(taken.cookies, ElementsAre(Cookie{1}));
    taken.gap->add(Fid{7}, 3);
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_EQ(peer.queue.usage().all(), 0U);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(gap_kind, subscription_answer_kind));
    EXPECT_THAT(peer.counts, ElementsAre(FidCount{Fid{7}, 5}));
}

TEST(SendQueue, CountsWhatWaitsWithAMark) {
    QueuePeer peer;
    Frames frames;
    SendQueue::Handling marked = frames.dropping(1);
    marked.mark = 1;
    frames.add(peer.queue, marked);
    frames.add(peer.queue, marked);
    frames.add(peer.queue, frames.dropping(2));
    frames.add(peer.queue, marked);
    EXPECT_EQ(peer.queue.marked(), 3U);
    static_cast<void>(peer.queue.take_back());
    EXPECT_EQ(peer.queue.marked(), 2U);
    peer.take_one();
    EXPECT_EQ(peer.queue.marked(), 1U);
    static_cast<void>(peer.queue.take_rest(1000));
    EXPECT_EQ(peer.queue.marked(), 0U);
}

TEST(SendQueue, AReclaimWithoutALossLeavesNoGap) {
    QueuePeer peer;
    Frames frames;
    SendQueue::Handling marked = frames.dropping(1);
    marked.mark = 77;
    frames.add(peer.queue, marked);
    auto taken = peer.queue.take_back();
    EXPECT_EQ(taken.mark, 77U);
    peer.queue.settle(taken);
    EXPECT_TRUE(peer.queue.has_drained());
    // A gap that others have added stays, at any position.
    peer.queue.add_gap(Fid{7}, 1);
    frames.add(peer.queue, frames.dropping(2));
    frames.add(peer.queue, frames.dropping(3));
    peer.queue.settle(peer.queue.take_back());
    peer.queue.settle(peer.queue.take_back());
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(gap_kind));
    EXPECT_THAT(peer.counts, ElementsAre(FidCount{Fid{7}, 1}));
}

TEST(SendQueue, TakesBackAWholeMessageOrNothingOfIt) {
    QueuePeer peer;
    Frames frames;
    for (const std::uint64_t first : {10U, 20U}) {
        frames.add(peer.queue, frames.dropping(first));
        frames.add(peer.queue, frames.dropping(first + 1, true));
        frames.add(peer.queue, frames.dropping(first + 2, true));
    }
    peer.take_one(); // of the first message
    EXPECT_EQ(peer.queue.usage().droppable, 30U);
    const auto taken = peer.queue.take_back();
    EXPECT_THAT(taken.cookies, ElementsAre(Cookie{20}, Cookie{21}, Cookie{22}));
    taken.gap->add(Fid{1}, 1);
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, page_kind, page_kind, gap_kind));
}

TEST(SendQueue, KeepsWhatFollowsAHeadThatHadLeftBefore) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    peer.take_one();
    frames.add(peer.queue, frames.dropping(2, true));
    frames.add(peer.queue, frames.dropping(3, true));
    EXPECT_EQ(peer.queue.usage().droppable, 0U);
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    frames.add(peer.queue, frames.dropping(4));
    EXPECT_THAT(peer.queue.take_back().cookies, ElementsAre(Cookie{4}));
}

TEST(SendQueue, KeepsWhatIsPostedAndTheRestOfWhatHasBegunToLeave) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    frames.add(peer.queue, frames.dropping(2, true));
    frames.add(peer.queue, frames.dropping(3));
    EXPECT_EQ(peer.queue.kept(), 0U);
    peer.take_one();
    EXPECT_EQ(peer.queue.kept(), 2 * frames.dropping(1).amount);
    frames.add(peer.queue, {.cookie = Cookie{4}, .amount = 10});
    EXPECT_EQ(peer.queue.kept(), 2 * frames.dropping(1).amount);
}

TEST(SendQueue, KnowsTheRestOfAPartlyPostedMessage) {
    QueuePeer peer;
    Frames frames;
    for (const std::uint64_t cookie : {1U, 2U, 3U, 4U})
        frames.add(peer.queue, {.cookie = Cookie{cookie},
                                .amount = 10,
                                .limited = cookie < 4,
                                .continues = cookie == 2 || cookie == 3});
    EXPECT_EQ(peer.queue.rest_of_begun(), 0U);
    EXPECT_EQ(peer.queue.usage().limited, 30U);
    peer.take_one();
    EXPECT_EQ(peer.queue.rest_of_begun(), 20U) << "not the following message";
    EXPECT_EQ(peer.queue.usage().limited, 20U) << "queued bytes";
    peer.take_one();
    peer.take_one();
    EXPECT_EQ(peer.queue.rest_of_begun(), 0U);
    EXPECT_EQ(peer.queue.usage().limited, 0U);
}

TEST(SendQueue, AFragmentWhoseBeginningHasLeftIsNotTakenBack) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    peer.take_all();
    frames.add(peer.queue, frames.dropping(2, true));
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_EQ(peer.queue.usage().droppable, 0U);
}

TEST(SendQueue, WhatIsNotDroppableStays) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    frames.add(peer.queue, {.cookie = Cookie{2}, .amount = 10});
    EXPECT_THAT(peer.queue.take_back().cookies, ElementsAre(Cookie{1}));
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_EQ(peer.queue.usage().waiting, 10U);
}

TEST(SendQueue, AMessageInFragmentsReturnsItsCookieForEach) {
    QueuePeer peer;
    RegisteredBuffer memory{10000};
    ZeroCopyMessage message{.fid = Fid{1}, .slice_count = 1, .slices = {}, .total_bytes = 10000};
    message.slices[0] = memory.slice();
    peer.queue.add_message(message, {.cookie = Cookie{9}, .amount = 1, .droppable = true});
    EXPECT_EQ(frames_for(message, body_limit), 3U);
    peer.take_one();
    EXPECT_EQ(peer.queue.usage().droppable, 0U) << "a part of it is in flight";
    const auto rest = peer.queue.take_rest(body_limit);
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].frames, 2U);
    EXPECT_THAT(peer.complete_one(),
                ElementsAre(testing::Field(&SendQueue::Returned::cookie, Cookie{9})));
}

// The counters of a queue at its limits, and reuse of its memory.

constexpr std::array<std::byte, 8> an_answer{};

class QueueLimits : public testing::Test {
  protected:
    void add_page(SendQueue::Handling handling) {
        peer.queue.add_frame(page_kind, {}, memory.slice(0, 100), handling);
    }
    void add_message(std::uint64_t cookie, std::size_t bytes, SendQueue::Handling handling = {}) {
        ZeroCopyMessage& message = messages.emplace_back();
        message.fid = Fid{cookie};
        message.slice_count = 1;
        message.slices[0] = memory.slice(0, bytes);
        message.total_bytes = bytes;
        handling.cookie = Cookie{cookie};
        handling.amount = 1;
        peer.queue.add_message(message, handling);
    }
    // The enqueue time of the first message in the frame that completes next.
    TimePoint complete_one() {
        std::vector<SendQueue::Returned> returned;
        const Cookie cookie = peer.under_way.front();
        peer.under_way.erase(peer.under_way.begin());
        return peer.queue.on_sent(cookie, Fate::sent, returned);
    }
    static TimePoint at(int seconds) { return TimePoint{std::chrono::seconds{seconds}}; }

    RegisteredBuffer memory{65536};
    std::deque<ZeroCopyMessage> messages;
    QueuePeer peer;
};

TEST_F(QueueLimits, CountsTheAnswersThatWait) {
    peer.queue.add_answer(subscription_answer_kind, an_answer);
    peer.queue.add_answer(subscription_answer_kind, an_answer);
    EXPECT_EQ(peer.queue.answers(), 2U);
    ASSERT_TRUE(peer.take_one());
    EXPECT_EQ(peer.queue.answers(), 1U);
    peer.queue.add_answer(subscription_answer_kind, an_answer);
    EXPECT_EQ(peer.queue.answers(), 2U);
    peer.queue.add_positions({.extension = {.instance = 1, .request = 1}, .counts = {{Fid{1}, 1}}});
    static_cast<void>(peer.queue.take_rest(body_limit));
    EXPECT_EQ(peer.queue.answers(), 0U);
    EXPECT_EQ(peer.queue.positions(), 0U);
}

// Answers and gaps use no memory of the pool.
TEST_F(QueueLimits, AnAnswerIsSentAlsoAboveThePostLimit) {
    add_page({.amount = 10});
    ASSERT_TRUE(peer.take_one());
    peer.queue.add_answer(subscription_answer_kind, an_answer);
    peer.queue.add_gap(Fid{1}, 1);
    add_page({.amount = 10});
    peer.take_all(0);
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, subscription_answer_kind, gap_kind));
}

TEST_F(QueueLimits, ReportsTheEnqueueTimeOfTheFirstMessage) {
    peer.slices = 2;
    for (const int second : {3, 4, 5})
        add_page({.amount = 1, .since = at(second)});
    peer.take_all();
    EXPECT_EQ(complete_one(), at(3)) << "of two pages";
    EXPECT_EQ(complete_one(), at(5));
    add_message(1, 40, {.since = at(6)});
    add_message(2, 40, {.since = at(7)});
    peer.take_all();
    EXPECT_EQ(complete_one(), at(6)) << "of two messages";
}

TEST_F(QueueLimits, ReportsFateWithTheLastFragment) {
    add_message(9, 10000);
    peer.take_all();
    std::vector<std::optional<Fate>> fates;
    while (!peer.under_way.empty())
        for (const SendQueue::Returned& each : peer.complete_one())
            fates.push_back(each.fate);
    EXPECT_THAT(fates, ElementsAre(std::nullopt, std::nullopt, Fate::sent));
}

TEST_F(QueueLimits, RestOfBegunIsOneMessage) {
    add_message(1, 10000);
    add_message(2, 10000);
    EXPECT_EQ(peer.queue.rest_of_begun(), 0U);
    ASSERT_TRUE(peer.take_one());
    EXPECT_EQ(peer.queue.rest_of_begun(), 1U);
    ASSERT_TRUE(peer.take_one());
    ASSERT_TRUE(peer.take_one());
    EXPECT_EQ(peer.queue.rest_of_begun(), 0U) << "no part of the second one was sent";
}

TEST_F(QueueLimits, KeepsNothingForItsOwnFrames) {
    for (std::uint64_t fid = 0; fid < 100; ++fid)
        peer.queue.add_gap(Fid{fid}, 1);
    peer.queue.add_answer(subscription_answer_kind, an_answer);
    add_page({.cookie = Cookie{4}, .amount = 10});
    peer.take_all();
    ASSERT_EQ(peer.under_way.size(), 2U) << "the gaps have their own memory";
    std::vector<Cookie> kept;
    peer.queue.for_each_kept([&](Cookie cookie, std::size_t) { kept.push_back(cookie); });
    EXPECT_THAT(kept, ElementsAre(Cookie{4}));
}

// --- reclaimed messages ---------------------------------------------------------------------

TEST_F(QueueLimits, AReclaimedMessageIsNotCounted) {
    for (const std::uint64_t cookie : {1U, 2U})
        add_page({.cookie = Cookie{cookie}, .amount = 10, .droppable = true});
    add_page({.cookie = Cookie{3}, .amount = 10, .droppable = true, .continues = true});
    peer.queue.take_back().gap->add(Fid{1}, 1); // the last two pages are one message
    EXPECT_EQ(peer.queue.usage().droppable, 10U);
    EXPECT_EQ(peer.queue.usage().waiting, 10U);
}

TEST_F(QueueLimits, AGapBeforeAReclaimedMessageGrows) {
    add_page({.cookie = Cookie{1}, .amount = 10});
    peer.queue.add_gap(Fid{7}, 1);
    add_page({.cookie = Cookie{2}, .amount = 10, .droppable = true});
    const auto taken = peer.queue.take_back();
    taken.gap->add(Fid{7}, 2);
    peer.queue.settle(taken);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind)) << "reported once";
    EXPECT_THAT(peer.counts, ElementsAre(FidCount{Fid{7}, 3}));
}

// Each round adds a page and a gap and reclaims the page: then the gaps are adjacent.
TEST_F(QueueLimits, GapsWithNothingBetweenThemBecomeOne) {
    constexpr std::uint64_t rounds = 1000;
    add_page({.cookie = Cookie{1}, .amount = 10});
    for (std::uint64_t i = 0; i < rounds; ++i) {
        add_page({.cookie = Cookie{2}, .amount = 10, .droppable = true});
        peer.queue.add_gap(Fid{i % 4}, 1);
        const auto taken = peer.queue.take_back();
        taken.gap->add(Fid{7}, 1);
        peer.queue.settle(taken);
        ASSERT_EQ(peer.queue.size(), 2U);
    }
    EXPECT_EQ(peer.queue.gap_counts(), 5U);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind));
    EXPECT_THAT(peer.counts,
                UnorderedElementsAre(FidCount{Fid{0}, rounds / 4}, FidCount{Fid{1}, rounds / 4},
                                     FidCount{Fid{2}, rounds / 4}, FidCount{Fid{3}, rounds / 4},
                                     FidCount{Fid{7}, rounds}));
    EXPECT_EQ(peer.queue.gap_counts(), 0U);
}

// Part of the first gap was sent, so it cannot move to the second one.
TEST_F(QueueLimits, SendingGapMergesTheNextGap) {
    for (std::uint64_t fid = 0; fid < 300; ++fid)
        peer.queue.add_gap(Fid{fid}, 1);
    ASSERT_TRUE(peer.take_one());
    add_page({.cookie = Cookie{1}, .amount = 10, .droppable = true});
    for (std::uint64_t fid = 0; fid < 600; ++fid)
        peer.queue.add_gap(Fid{fid}, 1);
    const auto taken = peer.queue.take_back();
    taken.gap->add(Fid{0}, 1);
    peer.queue.settle(taken);
    EXPECT_EQ(peer.queue.size(), 1U);
    for (int i = 0; i < 3; ++i) { // a few frames are in flight at a time
        peer.take_all();
        while (!peer.under_way.empty())
            static_cast<void>(complete_one());
    }
    std::map<Fid, std::uint64_t> sum;
    for (const FidCount& each : peer.counts)
        sum[each.fid] += each.count;
    EXPECT_EQ(sum.size(), 600U);
    EXPECT_EQ(sum[Fid{0}], 3U);
    EXPECT_EQ(sum[Fid{299}], 2U);
    EXPECT_EQ(sum[Fid{599}], 1U);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST_F(QueueLimits, CountsWhatAllGapsHold) {
    add_page({.cookie = Cookie{1}, .amount = 10, .droppable = true});
    for (std::uint64_t fid = 0; fid + 1 < SendQueue::gap_counts_limit; ++fid)
        peer.queue.add_gap(Fid{fid}, 1);
    peer.queue.add_gap(Fid{0}, 1);
    EXPECT_FALSE(peer.queue.gaps_are_full());
    const auto taken = peer.queue.take_back();
    taken.gap->add(Fid{SendQueue::gap_counts_limit}, 1);
    peer.queue.settle(taken);
    EXPECT_TRUE(peer.queue.gaps_are_full());
    ASSERT_TRUE(peer.take_one());
    EXPECT_EQ(peer.queue.gap_counts(), 0U) << "all are in flight";
}

// The part in flight cannot be reported again, so the rest stays, although no loss was added.
TEST_F(QueueLimits, SendingGapStaysWhenSettledEmpty) {
    for (std::uint64_t fid = 0; fid < 300; ++fid)
        peer.queue.add_gap(Fid{fid}, 1);
    ASSERT_TRUE(peer.take_one());
    ASSERT_LT(peer.counts.size(), 300U);
    add_page({.cookie = Cookie{1}, .amount = 10, .droppable = true});
    peer.queue.settle(peer.queue.take_back());
    EXPECT_FALSE(peer.queue.has_drained());
    peer.take_all();
    EXPECT_EQ(peer.counts.size(), 300U);
    EXPECT_TRUE(peer.queue.has_drained());
}

// A message in several pages is droppable or not; parts of it are sent while the rest is added, and
// the last messages that are completely unsent are reclaimed.
class PlainQueue {
  public:
    struct Entry {
        std::uint64_t cookie = 0; // 0: messages are missing here
        bool droppable = false;
        bool continues = false;
    };
    void add(Entry entry) {
        const bool head_waits = !entries_.empty() && entries_.back().droppable;
        entry.droppable = entry.droppable && (!entry.continues || head_waits);
        entries_.push_back(entry);
    }
    // 0: of a reclaimed message
    std::optional<std::uint64_t> take_one() {
        if (entries_.empty()) return std::nullopt;
        const std::uint64_t cookie = entries_.front().cookie;
        entries_.pop_front();
        for (Entry& each : entries_) {
            if (!each.continues) break;
            each.droppable = false;
        }
        return cookie;
    }
    std::vector<Cookie> take_back() {
        std::vector<Cookie> taken;
        for (std::size_t i = entries_.size(); i > 0 && taken.empty(); --i) {
            if (!entries_[i - 1].droppable || entries_[i - 1].continues) continue;
            for (std::size_t j = i - 1; j < entries_.size(); ++j) {
                if (j >= i && !entries_[j].continues) break;
                taken.push_back(Cookie{entries_[j].cookie});
                entries_[j] = {};
            }
        }
        return taken;
    }

  private:
    std::deque<Entry> entries_;
};

TEST_F(QueueLimits, TakesBackAsAPlainQueueDoes) {
    std::mt19937 random{1};
    PlainQueue model;
    std::uint64_t cookie = 0;
    // Gaps are consumed at their position.
    const auto take_one = [&] {
        const std::size_t told = peer.counts.size();
        if (!peer.take_one()) return;
        while (!peer.under_way.empty())
            for (const SendQueue::Returned& each : peer.complete_one())
                ASSERT_EQ(model.take_one(), static_cast<std::uint64_t>(each.cookie));
        for (std::size_t i = told; i < peer.counts.size(); ++i)
            for (std::uint64_t left = peer.counts[i].count; left > 0; --left)
                ASSERT_EQ(model.take_one(), 0U);
    };
    for (int step = 0; step < 20'000; ++step) {
        const auto action = random() % 8;
        if (action < 3) {
            const bool droppable = random() % 3 > 0;
            const auto pages = 1 + random() % 3;
            for (std::uint32_t page = 0; page < pages; ++page) {
                ++cookie;
                model.add({.cookie = cookie, .droppable = droppable, .continues = page > 0});
                add_page({.cookie = Cookie{cookie},
                          .amount = 1,
                          .droppable = droppable,
                          .continues = page > 0});
                if (random() % 8 == 0) take_one();
            }
        } else if (action < 6) {
            const auto taken = peer.queue.take_back();
            ASSERT_EQ(taken.cookies, model.take_back()) << "step " << step;
            if (taken.gap != nullptr) taken.gap->add(Fid{1}, taken.cookies.size());
        } else {
            take_one();
        }
        if (HasFatalFailure()) FAIL() << "step " << step;
    }
    EXPECT_GT(cookie, 10'000U);
}

// --- small queues ---------------------------------------------------------------------------

TEST_F(QueueLimits, FourSmallMessagesAreGatheredOnceEach) {
    for (std::uint64_t cookie = 1; cookie <= 4; ++cookie)
        add_message(cookie, 40);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind));
    std::vector<Cookie> cookies;
    for (const SendQueue::Returned& each : peer.complete_one())
        cookies.push_back(each.cookie);
    EXPECT_THAT(cookies, ElementsAre(Cookie{1}, Cookie{2}, Cookie{3}, Cookie{4}));
}

TEST_F(QueueLimits, TheRestOfAMessageInFourPagesIsCountedOnce) {
    add_page({.cookie = Cookie{1}, .amount = 10, .droppable = true});
    ASSERT_TRUE(peer.take_one());
    for (std::uint64_t cookie = 2; cookie <= 5; ++cookie)
        add_page({.cookie = Cookie{cookie}, .amount = 10, .droppable = true, .continues = true});
    EXPECT_EQ(peer.queue.kept(), 50U) << "the posted page and four queued pages";
}

TEST_F(QueueLimits, AGapAtTheHeadIsNotMergedWithALaterOne) {
    peer.queue.add_gap(Fid{1}, 1);
    add_page({.cookie = Cookie{1}, .amount = 10});
    add_page({.cookie = Cookie{2}, .amount = 10});
    add_page({.cookie = Cookie{3}, .amount = 10, .droppable = true});
    peer.queue.take_back().gap->add(Fid{2}, 1);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(gap_kind, page_kind, page_kind, gap_kind));
    EXPECT_THAT(peer.counts, ElementsAre(FidCount{Fid{1}, 1}, FidCount{Fid{2}, 1}));
}

// --- waiting for other messages -------------------------------------------------------------

TEST_F(QueueLimits, ExactlyEnoughForAFrameWaitsNoLonger) {
    add_message(1, 40);
    ASSERT_TRUE(peer.take_one());
    peer.frame_bytes = 8 * SmallMessageBatcher::enough_bytes;
    constexpr std::size_t eighth = SmallMessageBatcher::enough_bytes / 8;
    for (std::uint64_t cookie = 2; cookie <= 9; ++cookie) {
        EXPECT_FALSE(peer.take_one()) << cookie;
        add_message(cookie, eighth);
    }
    EXPECT_TRUE(peer.take_one());
}

TEST_F(QueueLimits, AMessageOfTheLimitIsSmallAndALargerOneIsNot) {
    add_message(1, 40);
    ASSERT_TRUE(peer.take_one());
    peer.frame_bytes = 4 * SmallMessageBatcher::message_limit;
    peer.by_device = true; // its limit is below what is enough for a frame
    add_message(2, SmallMessageBatcher::device_message_limit);
    EXPECT_FALSE(peer.take_one());
    static_cast<void>(peer.queue.take_rest(peer.frame_bytes));
    add_message(3, SmallMessageBatcher::device_message_limit + 1);
    EXPECT_TRUE(peer.take_one());
}

// --- one frame object for all frames --------------------------------------------------------

// As in the sender: a frame must contain nothing of the previous one.
TEST_F(QueueLimits, AFrameThatIsFilledAgainHasNothingOfTheOneBefore) {
    const std::array<std::byte, fragment_extension_bytes> extension{};
    peer.queue.add_frame(fragment_kind, extension, memory.slice(0, 100), {.amount = 1});
    peer.queue.add_answer(subscription_answer_kind, an_answer);
    add_message(1, 40, {.prompt = true});
    add_message(2, 40, {.prompt = true});
    peer.queue.add_gap(Fid{1}, 1);
    add_page({.amount = 1});
    peer.queue.add_totals([](std::span<FidCount>) { return TotalsPart{.count = 0, .last = true}; });
    ReadyFrame frame;
    std::vector<std::array<std::size_t, 4>> seen; // kind, flags, extension, slices
    std::vector<bool> with_cookie;
    while (peer.queue.prepare({.post_limit = SIZE_MAX, .body_limit = body_limit}, frame)) {
        seen.push_back({frame.kind, frame.flags, frame.extension_bytes, frame.slice_count});
        with_cookie.push_back(frame.cookie.has_value());
        peer.queue.posted();
    }
    EXPECT_THAT(seen, ElementsAre(std::array<std::size_t, 4>{fragment_kind, 0, extension.size(), 1},
                                  std::array<std::size_t, 4>{subscription_answer_kind, 0, 8, 0},
                                  std::array<std::size_t, 4>{page_kind, gathered_flag, 0, 1},
                                  std::array<std::size_t, 4>{gap_kind, 0, fid_count_bytes, 0},
                                  std::array<std::size_t, 4>{page_kind, 0, 0, 1},
                                  std::array<std::size_t, 4>{totals_kind, 0, 0, 0}));
    EXPECT_THAT(with_cookie, ElementsAre(true, false, true, false, true, false));
}

// An item that counts the reads of its flag.
struct Counted {
    static inline int looks = 0;
    struct Flag {
        bool value = false;
        explicit(false) operator bool() const {
            ++looks;
            return value;
        }
    };
    struct Handling {
        Flag continues;
    };
    int number = 0;
    Handling handling;
    std::shared_ptr<int> held;
};

struct Queue : DroppableQueue<Counted> {
    void add(int number, bool droppable, bool continues = false) {
        emplace_back() = {.number = number,
                          .handling = {.continues = {.value = continues}},
                          .held = std::make_shared<int>(number)};
        if (droppable && !continues) mark_back();
    }
    std::vector<int> take() {
        const auto [first, end] = unmark_last();
        std::vector<int> numbers;
        for (auto each = first; each != end; ++each)
            numbers.push_back(each->number);
        erase(first, end);
        return numbers;
    }
    std::vector<int> numbers() const {
        std::vector<int> all;
        for (const Counted& each : *this)
            all.push_back(each.number);
        return all;
    }
};

TEST(DroppableQueue, RemovesTheLatestDroppableItemAnywhere) {
    Queue queue;
    queue.add(1, true); // at the front
    queue.add(2, false);
    queue.add(3, true); // between others
    queue.add(4, true, true);
    queue.add(5, false);
    queue.add(6, true); // at the back
    EXPECT_THAT(queue.take(), ElementsAre(6));
    EXPECT_THAT(queue.take(), ElementsAre(3, 4)) << "and what continues it";
    EXPECT_THAT(queue.numbers(), ElementsAre(1, 2, 5));
    queue.add(7, true);
    EXPECT_THAT(queue.take(), ElementsAre(7)) << "the newest item first";
    EXPECT_THAT(queue.take(), ElementsAre(1));
    EXPECT_THAT(queue.take(), IsEmpty());
    EXPECT_THAT(queue.numbers(), ElementsAre(2, 5));
}

TEST(DroppableQueue, WhatIsNotMarkedAnyMoreStaysAndMayLeave) {
    Queue queue;
    queue.add(1, true);
    queue.add(2, true);
    queue.unmark_front();
    queue.pop_front();
    EXPECT_THAT(queue.take(), ElementsAre(2));
    queue.add(3, true);
    queue.unmark_front();
    EXPECT_THAT(queue.take(), IsEmpty());
    EXPECT_THAT(queue.numbers(), ElementsAre(3));
}

TEST(DroppableQueue, TakingEverythingOutLooksAtNothingThatStays) {
    constexpr int count = 1000;
    Queue queue;
    for (int i = 0; i < count; ++i) {
        queue.add(3 * i, false);
        queue.add(3 * i + 1, true);
        queue.add(3 * i + 2, true);
    }
    for (int i = 0; i < count; ++i)
        queue.add(3 * count + i, false); // after all of them
    Counted::looks = 0;
    for (int i = count - 1; i >= 0; --i) {
        ASSERT_THAT(queue.take(), ElementsAre(3 * i + 2));
        ASSERT_THAT(queue.take(), ElementsAre(3 * i + 1));
    }
    EXPECT_LE(Counted::looks, 2 * count) << "one look at the item after each";
    EXPECT_EQ(queue.size(), 2U * count);
}

// Other items stay at their address: an iterator is valid until its item is removed.
TEST(DroppableQueue, TakingOutMovesNothing) {
    Queue queue;
    for (int i = 0; i < 100; ++i)
        queue.add(i, i % 3 != 0);
    const auto last = std::prev(queue.end());
    const Counted* const address = &*last;
    while (!queue.take().empty()) {
    }
    EXPECT_EQ(&queue.back(), address);
    EXPECT_EQ(last->number, 99);
}

TEST(DroppableQueue, RemovedItemsAreDestroyedAtOnce) {
    Queue queue;
    for (int i = 0; i < 3; ++i)
        queue.add(i, i == 1);
    const std::weak_ptr<int> first = queue.front().held;
    const std::weak_ptr<int> second = std::next(queue.begin())->held;
    queue.take();
    EXPECT_TRUE(second.expired());
    queue.pop_front();
    EXPECT_TRUE(first.expired());
    EXPECT_FALSE(queue.emplace_back().held) << "a new element equals Item{}";
    queue.mark_back();
    queue.clear();
    EXPECT_TRUE(queue.empty());
    EXPECT_THAT(queue.take(), IsEmpty());
}

// Counts the slots of all queues, used or not.
struct Place {
    static inline std::size_t count = 0;
    Place() { ++count; }
    Place(const Place&) { ++count; }
    Place& operator=(const Place&) = default;
    ~Place() { --count; }
    Counted::Handling handling;
};

TEST(DroppableQueue, KeepsTheMemoryOfAFewItems) {
    DroppableQueue<Place> queue;
    const Place* const first = &queue.emplace_back();
    for (int i = 0; i < 100; ++i) {
        queue.pop_front();
        EXPECT_EQ(&queue.emplace_back(), first);
    }
    for (int i = 0; i < 1'000; ++i)
        queue.emplace_back();
    queue.erase(queue.begin(), queue.end());
    EXPECT_EQ(Place::count, DroppableQueue<Place>::kept_count);
}

TEST(PendingGaps, AddsUpPerFidAndIsEmptyAfterwards) {
    PendingGaps gaps;
    EXPECT_TRUE(gaps.empty());
    gaps.add(Fid{9}, 2);
    gaps.add(Fid{1}, 1);
    gaps.add(Fid{9}, 3);
    EXPECT_THAT(gaps.take(), ElementsAre(FidCount{.fid = Fid{1}, .count = 1},
                                         FidCount{.fid = Fid{9}, .count = 5}));
    EXPECT_TRUE(gaps.empty());
    EXPECT_THAT(gaps.take(), IsEmpty());
}

} // namespace
} // namespace netio::pubsub::send_queue_test
