// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/page.hpp"

#include <gtest/gtest.h>

namespace netio::flush_pace_test {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{1000s};

TEST(FlushPace, TheFirstPageDoesNotWait) {
    EXPECT_EQ(FlushPace{100us}.next(start), start);
}

TEST(FlushPace, PagesThatFollowQuicklyLeaveOnceInAFlushTime) {
    FlushPace pace{100us};
    pace.on_flushed(start);
    EXPECT_EQ(pace.next(start), start + 100us);
    EXPECT_EQ(pace.next(start + 99us), start + 100us);
    pace.on_flushed(start + 100us);
    EXPECT_EQ(pace.next(start + 101us), start + 200us);
}

TEST(FlushPace, AfterAPauseAPageDoesNotWait) {
    FlushPace pace{100us};
    pace.on_flushed(start);
    EXPECT_EQ(pace.next(start + 100us), start + 100us);
    EXPECT_EQ(pace.next(start + 5s), start + 5s);
}

TEST(FlushPace, AFewNearlyEmptyPagesChangeNothing) {
    for (int pages = 0; pages <= 5; ++pages) {
        FlushPace pace{40us};
        pace.on_flushed(start, {.nearly_empty = pages});
        EXPECT_EQ(pace.next(start + 30us, true), start + 40us);
    }
}

TEST(FlushPace, SendingOnlyNearlyEmptyPagesCausesAnEqualPause) {
    FlushPace pace{40us};
    pace.on_flushed(start, {.nearly_empty = 6});
    EXPECT_EQ(pace.next(start + 30us, true), start + 126us) << "at least 96 us";
    pace.on_flushed(start, {.nearly_empty = 100});
    EXPECT_EQ(pace.next(start + 5ms, true), start + 10ms);
    EXPECT_EQ(pace.next(start + 6ms, true), start + 10ms) << "once";
}

TEST(FlushPace, ALoopThatRestsBetweenFlushesDoesNotPause) {
    FlushPace pace{40us};
    pace.on_flushed(start, {.nearly_empty = 1000});
    EXPECT_EQ(pace.next(start + 10us), start + 40us);
    pace.on_flushed(start, {.nearly_empty = 1000});
    EXPECT_EQ(pace.next(start + 1ms), start + 1ms);
    EXPECT_EQ(pace.next(start + 1ms, true), start + 1ms) << "the flush is over";
}

TEST(FlushPace, FullerPagesLeaveInTheFlushTimeAgain) {
    FlushPace pace{40us};
    pace.on_flushed(start, {.nearly_empty = 1000});
    EXPECT_EQ(pace.next(start + 10ms, true), start + 26ms);
    pace.on_flushed(start + 26ms, {});
    EXPECT_EQ(pace.next(start + 26ms, true), start + 26ms + 40us);
}

TEST(FlushPace, PagesThatStayAreNotLookedAtAllTheTime) {
    FlushPace pace{40us};
    pace.on_flushed(start, {.nearly_empty = 0, .kept = 10});
    EXPECT_EQ(pace.check_interval(), 40us);
    pace.on_flushed(start, {.nearly_empty = 0, .kept = 1000});
    EXPECT_EQ(pace.check_interval(), 2ms);
}

} // namespace
} // namespace netio::flush_pace_test
