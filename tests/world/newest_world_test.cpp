// SPDX-License-Identifier: Apache-2.0

// Schedules with subscribers that want conflation: only the newest message of each fid.

#include "tests/world/expect_good.hpp"

namespace netio::world::newest_world_test {
namespace {

// The pool holds one message at a time, and the message that waits for memory finds no credit when
// the memory is free.
TEST(WorldOfNewest, MessagesStoredWithoutMemoryAndThenCreditAreSentInTheEnd) {
    expect_good("world seed=1795414000002871\n"
                "process 0 publisher page_size_bytes=512 pages=4 policy=3\n"
                "process 1 subscriber heartbeat_ms=100\n"
                "process 2 subscriber\n"
                "at 0 process 1 subscribe\n"
                "at 6870 process 2 subscribe\n"
                "at 10195 process 0 busy us=23747310\n"
                "at 11007 process 0 publish bytes=1470 count=4 gap_us=10\n");
}

// Another subscriber uses all of the memory, and the publisher is ending.
TEST(WorldOfNewest, WaitingForMemoryWhileThePublisherEndsIsNotSlow) {
    expect_good("world seed=1795417000001363\n"
                "process 0 publisher page_size_bytes=512 pages=4\n"
                "process 1 subscriber\n"
                "process 4 subscriber receives=6\n"
                "at 0 process 1 subscribe policy=3\n"
                "at 0 process 4 subscribe\n"
                "at 1431 process 4 busy us=32731268\n"
                "at 10129 process 0 publish bytes=1298 count=3 gap_us=10\n"
                "at 14148 process 0 close\n");
}

// The last message of a fid in the page is too large to store: then the message before it does not
// count as the last one.
TEST(WorldOfNewest, ARemovedPageStoresNoMessageBeforeOneThatDoesNotFit) {
    expect_good("world seed=1795550000000446\n"
                "process 6 publisher newest=357 page_size_bytes=1000\n"
                "process 9 subscriber of=6\n"
                "process 10 subscriber of=6\n"
                "at 0 process 9 subscribe\n"
                "at 0 process 10 subscribe last=15 policy=3\n"
                "at 8857 process 6 publish bytes=245 count=468 fid=8 fids=22 gap_us=10\n"
                "at 11663 process 6 publish count=158 fid=5 fids=8 gap_us=10\n"
                "at 12812 process 6 publish bytes=3861 count=3 gap_us=10\n");
}

// It loses most of them: for each fid, the messages lost after the last arrival count once.
TEST(WorldOfNewest, MessagesLostBetweenTwoArrivalsAreReportedOnce) {
    expect_good("world\n"
                "process 0 publisher newest=286 page_size_bytes=256 pages=4 policy=3\n"
                "process 1 subscriber slow_us=2535\n"
                "at 0 process 1 subscribe\n"
                "at 11140 process 0 publish bytes=231 count=33\n");
}

} // namespace
} // namespace netio::world::newest_world_test
