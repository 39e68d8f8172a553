// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/pubsub/publisher/queue_peer.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub {
namespace {

using test::body_limit;
using test::QueuePeer;
using testing::ElementsAre;
using testing::IsEmpty;

struct Frames {
    RegisteredBuffer memory{4096};
    SendQueue::Handling dropping(std::uint64_t cookie, bool continues = false) const {
        return {.cookie = Cookie{cookie}, .amount = 10, .droppable = true, .continues = continues};
    }
    void add(SendQueue& queue, const SendQueue::Handling& handling) {
        queue.add_frame(page_kind, {}, memory.slice(0, 100), handling);
    }
};

TEST(SendQueue, GivesEveryCookieBackOnceAndKnowsWhatIsHeld) {
    QueuePeer peer;
    Frames frames;
    for (std::uint64_t i = 0; i < 3; ++i)
        frames.add(peer.queue, {.cookie = Cookie{i}, .amount = 10});
    EXPECT_EQ(peer.queue.holding().waiting, 30U);
    peer.take_one();
    EXPECT_EQ(peer.queue.holding().waiting, 20U);
    EXPECT_EQ(peer.queue.holding().posted, 10U);
    EXPECT_THAT(peer.complete_one(),
                ElementsAre(testing::Field(&SendQueue::Returned::cookie, Cookie{0})));
    EXPECT_EQ(peer.queue.holding().all(), 20U);
    const auto rest = peer.queue.take_rest(body_limit);
    ASSERT_EQ(rest.size(), 2U);
    EXPECT_EQ(rest[1].cookie, Cookie{2});
    EXPECT_EQ(peer.queue.holding().all(), 0U);
}

TEST(SendQueue, WhatIsPostedIsLimitedButForTheFirst) {
    QueuePeer peer;
    Frames frames;
    for (std::uint64_t i = 0; i < 4; ++i)
        frames.add(peer.queue, {.cookie = Cookie{i}, .amount = 10});
    peer.take_all(0);
    EXPECT_EQ(peer.queue.holding().posted, 10U);
    peer.take_all(20);
    EXPECT_EQ(peer.queue.holding().posted, 20U);
}

TEST(SendQueue, GapsAreToldWhereTheyBelongAndTogether) {
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

TEST(SendQueue, AGapThatGrowsWhileItIsBeingToldIsToldWhole) {
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

TEST(SendQueue, TotalsOfAnyNumberOfFidsTakeAsManyFramesAsTheyNeedAndFewAtOnce) {
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

TEST(SendQueue, PositionsLeaveInFramesThatSayWhoseTheyAre) {
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

TEST(SendQueue, TakesBackWhatCameLastAndLeavesAGapThere) {
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
    EXPECT_EQ(peer.queue.holding().all(), 0U);
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

TEST(SendQueue, WhereNobodyMissesWhatWasTakenBackThereIsNoGap) {
    QueuePeer peer;
    Frames frames;
    SendQueue::Handling marked = frames.dropping(1);
    marked.mark = 77;
    frames.add(peer.queue, marked);
    auto taken = peer.queue.take_back();
    EXPECT_EQ(taken.mark, 77U);
    peer.queue.settle(taken);
    EXPECT_TRUE(peer.queue.has_drained());
    // One that others have made stays, wherever it is.
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
    EXPECT_EQ(peer.queue.holding().droppable, 30U);
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
    EXPECT_EQ(peer.queue.holding().droppable, 0U);
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

TEST(SendQueue, TheRestOfWhatHasBegunToLeaveIsKnownAlsoWhereNothingIsDropped) {
    QueuePeer peer;
    Frames frames;
    for (const std::uint64_t cookie : {1U, 2U, 3U, 4U})
        frames.add(peer.queue, {.cookie = Cookie{cookie},
                                .amount = 10,
                                .limited = cookie < 4,
                                .continues = cookie == 2 || cookie == 3});
    EXPECT_EQ(peer.queue.rest_of_begun(), 0U);
    EXPECT_EQ(peer.queue.holding().limited, 30U);
    peer.take_one();
    EXPECT_EQ(peer.queue.rest_of_begun(), 20U) << "not what follows it";
    EXPECT_EQ(peer.queue.holding().limited, 20U) << "what waits";
    peer.take_one();
    peer.take_one();
    EXPECT_EQ(peer.queue.rest_of_begun(), 0U);
    EXPECT_EQ(peer.queue.holding().limited, 0U);
}

TEST(SendQueue, AFragmentWhoseBeginningHasLeftIsNotTakenBack) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    peer.take_all();
    frames.add(peer.queue, frames.dropping(2, true));
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_EQ(peer.queue.holding().droppable, 0U);
}

TEST(SendQueue, WhatIsNotDroppableStays) {
    QueuePeer peer;
    Frames frames;
    frames.add(peer.queue, frames.dropping(1));
    frames.add(peer.queue, {.cookie = Cookie{2}, .amount = 10});
    EXPECT_THAT(peer.queue.take_back().cookies, ElementsAre(Cookie{1}));
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_EQ(peer.queue.holding().waiting, 10U);
}

TEST(SendQueue, AMessageInFragmentsReturnsItsCookieForEach) {
    QueuePeer peer;
    RegisteredBuffer memory{10000};
    LentMessage message{.fid = Fid{1}, .slice_count = 1, .slices = {}, .total_bytes = 10000};
    message.slices[0] = memory.slice();
    peer.queue.add_message(message, {.cookie = Cookie{9}, .amount = 1, .droppable = true});
    EXPECT_EQ(frames_for(message, body_limit), 3U);
    peer.take_one();
    EXPECT_EQ(peer.queue.holding().droppable, 0U) << "a part of it is on its way";
    const auto rest = peer.queue.take_rest(body_limit);
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].frames, 2U);
    EXPECT_THAT(peer.complete_one(),
                ElementsAre(testing::Field(&SendQueue::Returned::cookie, Cookie{9})));
}

} // namespace
} // namespace netio::pubsub
