// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/slow_watch.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

using namespace std::chrono_literals;

struct Watched {
    SlowWatch watch{1s};
    Idleness idle;
    TimePoint now{};

    void look_after(Duration time, bool busy, std::uint64_t progress) {
        now += time;
        watch.look(now);
        watch.see(idle, {.has_more = busy, .progress = progress});
    }
};

TEST(SlowWatch, CountsTheTimeInWhichNothingIsTaken) {
    Watched watched;
    watched.look_after(0s, true, 7);
    for (int i = 0; i < 8; ++i)
        watched.look_after(watched.watch.period(), true, 7);
    EXPECT_EQ(watched.idle.time, 8 * watched.watch.period());
    EXPECT_TRUE(SlowWatch::stalled(watched.idle));
    watched.look_after(watched.watch.period(), true, 8);
    EXPECT_EQ(watched.idle.time, 0s);
    EXPECT_FALSE(SlowWatch::stalled(watched.idle));
}

TEST(SlowWatch, WhoTookSomethingBeforeTheWaitIsWaitedForAllTheSame) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.idle.waited_for = true; // behind the eighth, and before the look that sees it
    watched.look_after(watched.watch.period(), true, 8);
    watched.look_after(watched.watch.period(), true, 8);
    EXPECT_TRUE(watched.idle.waited_for);
    EXPECT_EQ(watched.idle.time, watched.watch.period());
}

TEST(SlowWatch, WhoHasTakenEverythingIsNotWaitedForAnyMore) {
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

TEST(SlowWatch, WhoIsWaitedForAndTakesNothingIsSlowThoughNothingElseIsThere) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.idle.waited_for = true;
    watched.look_after(watched.watch.period(), false, 7);
    EXPECT_TRUE(watched.idle.waited_for);
    EXPECT_FALSE(watched.idle.limited) << "its policy does not say so";
    EXPECT_EQ(watched.idle.time, watched.watch.period());
}

TEST(SlowWatch, WhoHasTakenNothingForSoLongHasStalled) {
    EXPECT_FALSE(SlowWatch::stalled({.time = SlowWatch::stalled_after - 1ns}));
    EXPECT_TRUE(SlowWatch::stalled({.time = SlowWatch::stalled_after}));
}

TEST(SlowWatch, NothingIsKeptForWhoGaveWayUntilItTakesSomething) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.look_after(watched.watch.period(), true, 7);
    watched.idle.gave_way = true;
    watched.look_after(watched.watch.period(), true, 7);
    EXPECT_TRUE(watched.idle.gave_way);
    watched.look_after(watched.watch.period(), true, 8);
    EXPECT_FALSE(watched.idle.gave_way);
    watched.idle.gave_way = true;
    watched.look_after(watched.watch.period(), false, 8);
    EXPECT_FALSE(watched.idle.gave_way) << "there is nothing that it could take";
}

TEST(SlowWatch, APauseOfThePublishersOwnCountsForTwoPeriodsAtMost) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.look_after(watched.watch.period(), true, 7);
    watched.look_after(1h, true, 7);
    EXPECT_LE(watched.idle.time, 3 * watched.watch.period());
}

TEST(SlowWatch, WhoHasNothingToTakeIsNotSlow) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.look_after(watched.watch.period(), false, 7);
    watched.look_after(watched.watch.period(), false, 7);
    EXPECT_EQ(watched.idle.time, 0s);
}

TEST(SlowWatch, TheTimeInWhichNobodyHadAnythingToTakeDoesNotCount) {
    Watched watched;
    watched.look_after(0s, true, 7);
    watched.watch.rest();
    watched.look_after(1h, true, 7);
    EXPECT_EQ(watched.idle.time, 0s);
}

TEST(SlowWatch, LooksOftenEnoughForTheShortestTime) {
    EXPECT_EQ(SlowWatch{8ms}.period(), 1ms);
    EXPECT_EQ(SlowWatch{1h}.period(), SlowWatch::stalled_after);
    EXPECT_GT(SlowWatch{1ns}.period(), 0s);
}

} // namespace
} // namespace netio::pubsub
