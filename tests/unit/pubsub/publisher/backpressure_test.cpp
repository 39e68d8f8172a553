// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/backpressure.hpp"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace netio::pubsub::backpressure_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t pool = 32 << 20;
constexpr std::size_t share = 1 << 20;

TEST(MemoryBudget, AllowsTheOptionWhileHalfIsFree) {
    MemoryBudget budget{pool};
    budget.set_subscribers(50);
    budget.use(pool / 2);
    EXPECT_FALSE(budget.is_short());
    EXPECT_EQ(budget.allowance(share), share);
    EXPECT_EQ(budget.post_limit(false), SIZE_MAX);
    budget.use(64);
    EXPECT_TRUE(budget.is_short());
    EXPECT_LT(budget.allowance(share), share);
    EXPECT_LT(budget.post_limit(false), pool / 50);
    budget.release(64);
    EXPECT_EQ(budget.allowance(share), share);
}

TEST(MemoryBudget, LeastFreeRestartsAtCurrent) {
    MemoryBudget budget{100};
    budget.use(70);
    budget.release(50);
    EXPECT_EQ(budget.take_least_free(), 30U);
    EXPECT_EQ(budget.take_least_free(), 80U);
    budget.use(5);
    EXPECT_EQ(budget.take_least_free(), 75U);
}

TEST(MemoryBudget, AStalledSubscriberGetsOnePostAtATime) {
    const MemoryBudget budget{pool};
    EXPECT_EQ(budget.post_limit(true), 0U);
}

TEST(MemoryBudget, AreShortOfWhatIsNeededNow) {
    MemoryBudget budget{100};
    budget.use(10);
    EXPECT_FALSE(budget.is_short(90));
    EXPECT_TRUE(budget.is_short(91));
}

TEST(MemoryBudget, HaveRecoveredWhenThreeQuartersAreFree) {
    MemoryBudget budget{100};
    budget.use(26);
    EXPECT_TRUE(budget.is_recovering());
    budget.release(1);
    EXPECT_FALSE(budget.is_recovering());
}

TEST(MemoryBudget, PostsHoldTooMuchAtHalfOfThePool) {
    const MemoryBudget budget{100};
    EXPECT_FALSE(budget.posts_hold_too_much(49, 0));
    EXPECT_TRUE(budget.posts_hold_too_much(50, 0));
    EXPECT_FALSE(MemoryBudget{1}.posts_hold_too_much(0, 0));
    EXPECT_TRUE(MemoryBudget{1}.posts_hold_too_much(1, 0));
}

TEST(MemoryBudget, PostsHoldTooMuchForTheNeededMessage) {
    const MemoryBudget budget{100};
    EXPECT_FALSE(budget.posts_hold_too_much(20, 80)) << "the other posts will be released";
    EXPECT_TRUE(budget.posts_hold_too_much(20, 81));
    EXPECT_FALSE(budget.posts_hold_too_much(0, 101));
    EXPECT_FALSE(budget.posts_hold_too_much(20, 0));
}

TEST(MemoryBudget, KeepsHalfOfThePoolFreeOfBlockedQueues) {
    EXPECT_FALSE(MemoryBudget{1}.has_ample_space(1, 1));
    EXPECT_TRUE(MemoryBudget{2}.has_ample_space(1, 2));
    EXPECT_FALSE(MemoryBudget{2}.has_ample_space(1, 1));
    EXPECT_TRUE(MemoryBudget{3}.has_ample_space(1, 3));
    EXPECT_FALSE(MemoryBudget{3}.has_ample_space(1, 2)) << "more than half would be blocked";
    MemoryBudget budget{400};
    budget.set_subscribers(6);
    EXPECT_EQ(budget.piece(100, 200), 100U);
    EXPECT_EQ(budget.piece(100, 199), 19U);
    EXPECT_EQ(budget.piece(10, 199), 10U);
    EXPECT_EQ(budget.waiting_limit(200), 10U);
    EXPECT_EQ(budget.waiting_limit(109), 0U);
    EXPECT_EQ(budget.waiting_limit(50), 0U);
}

TEST(MemoryBudget, WhatTheLargestMessageTakesDoesNotWaitEither) {
    MemoryBudget budget{160, 60};
    budget.set_subscribers(1);
    EXPECT_EQ(budget.waiting_limit(64), 0U);
    EXPECT_EQ(budget.waiting_limit(65), 1U);
    const MemoryBudget large{160, 160};
    EXPECT_EQ(large.waiting_limit(83), 0U) << "at most half of the pool";
    EXPECT_EQ(large.waiting_limit(84), 1U);
    const MemoryBudget small{160, 1};
    EXPECT_EQ(small.waiting_limit(43), 0U) << "at least a quarter";
    EXPECT_EQ(small.waiting_limit(44), 1U);
}

// Each queues as much as it may, in any order and any number of times, and never sends it.
TEST(MemoryBudget, AQuarterDoesNotWaitHoweverManyAreWaitedFor) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        std::mt19937 random{seed};
        MemoryBudget budget{pool};
        const std::size_t subscribers = 2 + random() % 200;
        budget.set_subscribers(subscribers);
        std::vector<std::size_t> held(subscribers - 1);
        for (int step = 0; step < 20000; ++step) {
            std::size_t& one = held[random() % held.size()];
            const std::size_t message = 1 + random() % (random() % 4 == 0 ? 4 << 20 : 4096);
            if (!budget.has_ample_space(message, budget.free()) &&
                one + message > budget.waiting_limit(budget.free()))
                continue;
            one += message;
            budget.use(message);
            ASSERT_GE(budget.free(), pool / 4) << "seed " << seed << ", " << subscribers;
        }
    }
}

// Subscribers stall in any order, and take what they are allowed before the stall is detected; they
// never release anything. The others still find memory.
TEST(MemoryBudget, StalledSubscribersLeaveMemoryForTheOthers) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random{seed};
        MemoryBudget budget{pool};
        const std::size_t subscribers = 2 + random() % 60;
        budget.set_subscribers(subscribers);
        std::vector<std::size_t> held(subscribers - 1); // the last one does not stall
        for (int step = 0; step < 20000; ++step) {
            std::size_t& one = held[random() % held.size()];
            if (one >= std::max<std::size_t>(1, budget.allowance(share))) continue;
            const std::size_t piece = budget.piece(1 + random() % (256 << 10), budget.free());
            one += piece;
            budget.use(piece);
            ASSERT_GE(budget.free(), pool / 8) << "seed " << seed << ", " << subscribers;
        }
        EXPECT_GT(budget.allowance(share), std::size_t{16} << 10) << "seed " << seed;
    }
}

struct Watched {
    ProgressMonitor watch{1s};
    SubscriberProgress idle;
    TimePoint now{};

    void look_after(Duration time, bool busy, std::uint64_t progress) {
        now += time;
        watch.look(now);
        watch.see(idle, {.has_more = busy, .progress = progress});
    }
};

TEST(ProgressMonitor, CountsTheTimeWithoutProgress) {
    Watched watched;
    watched.look_after(0s, true, 7);
    for (int i = 0; i < 8; ++i)
        watched.look_after(watched.watch.period(), true, 7);
    EXPECT_EQ(watched.idle.time, 8 * watched.watch.period());
    EXPECT_TRUE(ProgressMonitor::stalled(watched.idle));
    watched.look_after(watched.watch.period(), true, 8);
    EXPECT_EQ(watched.idle.time, 0s);
    EXPECT_FALSE(ProgressMonitor::stalled(watched.idle));
}

TEST(ProgressMonitor, EarlierProgressDoesNotEndTheWait) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.idle.waited_for = true; // after the progress to 8, and before the look that sees it
    watched.look_after(watched.watch.period(), true, 8);
    watched.look_after(watched.watch.period(), true, 8);
    EXPECT_TRUE(watched.idle.waited_for);
    EXPECT_EQ(watched.idle.time, watched.watch.period());
}

TEST(ProgressMonitor, ASubscriberWithoutQueuedDataIsNotWaitedFor) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.idle.waited_for = true;
    watched.idle.limited = true;
    watched.look_after(watched.watch.period(), false, 8);
    watched.look_after(1h, false, 8);
    EXPECT_FALSE(watched.idle.waited_for);
    EXPECT_FALSE(watched.idle.limited);
    EXPECT_EQ(watched.idle.time, 0s);
}

TEST(ProgressMonitor, WaitedForCountsWithoutQueuedData) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.idle.waited_for = true;
    watched.look_after(watched.watch.period(), false, 7);
    EXPECT_TRUE(watched.idle.waited_for);
    EXPECT_FALSE(watched.idle.limited) << "not required by its policy";
    EXPECT_EQ(watched.idle.time, watched.watch.period());
}

TEST(ProgressMonitor, NoProgressForTheLimitMeansStalled) {
    EXPECT_FALSE(ProgressMonitor::stalled({.time = ProgressMonitor::stalled_after - 1ns}));
    EXPECT_TRUE(ProgressMonitor::stalled({.time = ProgressMonitor::stalled_after}));
}

TEST(ProgressMonitor, ReclaimedUntilProgress) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.look_after(watched.watch.period(), true, 7);
    watched.idle.reclaimed = true;
    watched.look_after(watched.watch.period(), true, 7);
    EXPECT_TRUE(watched.idle.reclaimed);
    watched.look_after(watched.watch.period(), true, 8);
    EXPECT_FALSE(watched.idle.reclaimed);
    watched.idle.reclaimed = true;
    watched.look_after(watched.watch.period(), false, 8);
    EXPECT_FALSE(watched.idle.reclaimed) << "it has no queued data";
}

TEST(ProgressMonitor, OwnPauseCountsForTwoPeriods) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.look_after(watched.watch.period(), true, 7);
    watched.look_after(1h, true, 7);
    EXPECT_LE(watched.idle.time, 3 * watched.watch.period());
}

TEST(ProgressMonitor, ASubscriberWithoutDataIsNotSlow) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.look_after(watched.watch.period(), false, 7);
    watched.look_after(watched.watch.period(), false, 7);
    EXPECT_EQ(watched.idle.time, 0s);
}

TEST(ProgressMonitor, RestDoesNotCount) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.watch.rest();
    watched.look_after(1h, true, 7);
    EXPECT_EQ(watched.idle.time, 0s);
}

TEST(ProgressMonitor, LooksOftenEnoughForTheShortestTime) {
    EXPECT_EQ(ProgressMonitor{8ms}.period(), 1ms);
    EXPECT_EQ(ProgressMonitor{1h}.period(), ProgressMonitor::stalled_after);
    EXPECT_GT(ProgressMonitor{1ns}.period(), 0s);
}

constexpr TimePoint now{1h};

EvictionPolicy eviction() {
    return EvictionPolicy{{.disconnect_after = 500ms, .close_timeout = 2s}};
}

TEST(EvictionPolicy, DisconnectsASlowSubscriberOnlyWhilePublishingWaitsForIt) {
    const ShutdownState end;
    EXPECT_THAT(eviction().verdict({.time = 1h}, end, now), IsEmpty());
    EXPECT_THAT(eviction().verdict({.time = 1h, .waited_for = true}, end, now), IsEmpty());
    EXPECT_THAT(eviction().verdict({.time = 499ms, .waited_for = true, .limited = true}, end, now),
                IsEmpty());
    EXPECT_THAT(eviction().verdict({.time = 500ms, .waited_for = true, .limited = true}, end, now),
                HasSubstr("more than 500 ms"));
}

TEST(EvictionPolicy, DuringShutdownAStalledSubscriberIsEvicted) {
    ShutdownState end;
    ASSERT_TRUE(end.begin(now + 1min));
    EXPECT_THAT(eviction().verdict({.time = 1999ms}, end, now), IsEmpty());
    EXPECT_THAT(eviction().verdict({.time = 2s}, end, now), HasSubstr("was closing"));
    EXPECT_THAT(eviction().verdict({}, end, now + 1min), HasSubstr("close_limit"));
}

EvictionPolicy::Holder holder(std::uint64_t id, Duration idle,
                              std::vector<std::pair<Cookie, std::size_t>> posts,
                              std::size_t rest = 0) {
    return {.subscriber = SubscriberId{id}, .idle = idle, .posts = std::move(posts), .rest = rest};
}

TEST(EvictionPolicy, EvictsTheLongestStalledFirst) {
    const MemoryBudget budget{100};
    EXPECT_THAT(
        EvictionPolicy::evicted({holder(1, 5s, {{Cookie{1}, 20}}), holder(2, 9s, {{Cookie{2}, 20}}),
                                 holder(3, 7s, {{Cookie{3}, 20}})},
                                budget, {}),
        ElementsAre(SubscriberId{2}));
    EXPECT_THAT(EvictionPolicy::evicted({holder(1, 5s, {{Cookie{1}, 49}})}, budget, {}), IsEmpty());
}

TEST(EvictionPolicy, WhatSeveralKeepCountsOnceAndIsFreeWithTheLast) {
    const MemoryBudget budget{100};
    const std::pair<Cookie, std::size_t> shared{Cookie{1}, 30};
    EXPECT_THAT(
        EvictionPolicy::evicted({holder(1, 5s, {shared}), holder(2, 9s, {shared})}, budget, {}),
        IsEmpty());
    EXPECT_THAT(
        EvictionPolicy::evicted({holder(1, 5s, {shared, {Cookie{2}, 30}}), holder(2, 9s, {shared})},
                                budget, {}),
        ElementsAre(SubscriberId{2}, SubscriberId{1}));
}

TEST(EvictionPolicy, EvictsAHolderOfTheNeededMemory) {
    MemoryBudget budget{100};
    budget.use(60);
    EXPECT_THAT(EvictionPolicy::evicted({holder(1, 5s, {{Cookie{1}, 20}})}, budget, {.amount = 80}),
                IsEmpty());
    EXPECT_THAT(EvictionPolicy::evicted(
                    {holder(1, 5s, {{Cookie{1}, 20}}), holder(2, 9s, {{Cookie{2}, 10}})}, budget,
                    {.amount = 80}),
                ElementsAre(SubscriberId{2}));
}

// Other blocked subscribers hold the rest, which cannot be reclaimed.
TEST(EvictionPolicy, EvictsAHolderIfNoOtherMemoryBecomesFree) {
    MemoryBudget budget{100};
    budget.use(95);
    const auto leaving = [&](std::size_t amount) {
        return EvictionPolicy::evicted({holder(1, 7s, {{Cookie{1}, 5}}), holder(2, 9s, {}, 10),
                                        holder(3, 5s, {{Cookie{2}, 5}}),
                                        holder(4, 999ms, {{Cookie{3}, 5}})},
                                       budget, {.amount = amount, .in_vain = true});
    };
    EXPECT_THAT(leaving(15), ElementsAre(SubscriberId{2}));
    EXPECT_THAT(leaving(16), ElementsAre(SubscriberId{2}, SubscriberId{1}));
    EXPECT_THAT(leaving(60), ElementsAre(SubscriberId{2}, SubscriberId{1}, SubscriberId{3}));
    EXPECT_THAT(leaving(5), ElementsAre(SubscriberId{2})) << "the free memory is in small pieces";
}

TEST(EvictionPolicy, CountsQueuedMemoryOfTheEvictedAsFree) {
    MemoryBudget budget{100};
    budget.use(95);
    EXPECT_THAT(EvictionPolicy::evicted(
                    {holder(1, 7s, {{Cookie{1}, 5}}, 40), holder(2, 9s, {{Cookie{2}, 5}}, 40)},
                    budget, {.amount = 50, .in_vain = true}),
                ElementsAre(SubscriberId{2}));
}

TEST(EvictionPolicy, EvictsNoSubscriberBeforeItsTime) {
    const MemoryBudget budget{100};
    EXPECT_THAT(EvictionPolicy::evicted({holder(1, 999ms, {{Cookie{1}, 90}})}, budget, {}),
                IsEmpty());
    EXPECT_THAT(EvictionPolicy::evicted({holder(1, 1s, {{Cookie{1}, 90}})}, budget, {}),
                ElementsAre(SubscriberId{1}));
}

TEST(ShutdownState, BeginsOnceAndIsOverdueAtItsLimit) {
    ShutdownState end;
    EXPECT_FALSE(end.has_begun());
    EXPECT_FALSE(end.is_overdue(now + 1h));
    EXPECT_TRUE(end.begin(now));
    EXPECT_FALSE(end.begin(now + 1h));
    EXPECT_FALSE(end.is_overdue(now - 1ns));
    EXPECT_TRUE(end.is_overdue(now));
}

TEST(ShutdownState, IsOrderlyOnlyIfAllHaveConfirmed) {
    ShutdownState end;
    end.note_unconfirmed(); // does not count before the shutdown
    ASSERT_TRUE(end.begin(now));
    EXPECT_EQ(end.result().reason, CloseReason::orderly);
    end.note_unconfirmed();
    end.note_unconfirmed();
    EXPECT_EQ(end.result().reason, CloseReason::unconfirmed);
    EXPECT_THAT(end.result().detail, HasSubstr("2 subscriber(s)"));
    end.begin_abort();
    EXPECT_EQ(end.result().reason, CloseReason::local);
}

} // namespace
} // namespace netio::pubsub::backpressure_test
