// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/flush_pace.hpp"

#include <gtest/gtest.h>

namespace netio {
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

} // namespace
} // namespace netio
