// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/flush_clock.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace netio::pubsub {
namespace {

using namespace std::chrono_literals;

// A flush of a thousand nearly empty pages, which costs 8 ms at least, and then a page that is
// opened.
class AFlushOfManyPages : public testing::Test {
  protected:
    // How long the page waited that is opened so long after the flush.
    Duration wait_of_a_page_opened_after(Duration pause) {
        bool is_many = true;
        std::optional<TimePoint> opened, left;
        Timer open{bed_.loop(), [&] {
                       opened = bed_.loop().now();
                       clock_->on_page_opened();
                   }};
        clock_.emplace(
            bed_.loop(), FlushClock::Options{.flush_time = 40us},
            [&] {
                if (!is_many) {
                    left = bed_.loop().now();
                    return;
                }
                is_many = false;
                clock_->on_flushed_in_time({.nearly_empty = 1000});
                open.start(pause);
            },
            [] {});
        Timer begin{bed_.loop(), [&] { clock_->on_page_opened(); }};
        begin.start(1ms); // so that the loop has slept before
        EXPECT_TRUE(bed_.run_until([&] { return left.has_value(); }));
        clock_.reset();
        return *left - *opened;
    }

  private:
    test::TestBed bed_{test::Bed::sim_tcp};
    std::optional<FlushClock> clock_;
};

TEST_F(AFlushOfManyPages, LeavesAsMuchTimeToFillThemIfNothingElseGoesOn) {
    EXPECT_GE(wait_of_a_page_opened_after(0ms), 8ms);
}

TEST_F(AFlushOfManyPages, DelaysNothingWhereTheLoopHasRested) {
    EXPECT_LE(wait_of_a_page_opened_after(1ms), 40us);
}

// When the time is up, in virtual time.
class AFlushClock : public testing::Test {
  protected:
    static constexpr auto flush_time = 10ms;

    void let_pass(Duration time) {
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
    }

    test::TestBed bed{test::Bed::sim_tcp};
    int flushes = 0;
    FlushPace::Pages next; // what becomes of the pages when the time is up
    FlushClock clock{bed.loop(), FlushClock::Options{.flush_time = flush_time},
                     [this] {
                         ++flushes;
                         clock.on_flushed_in_time(next);
                     },
                     [] {}};
};

TEST_F(AFlushClock, LooksAgainAtPagesThatWereKeptAndAtNothingElse) {
    next = {.nearly_empty = 1, .kept = 1};
    clock.on_page_opened();
    let_pass(5 * flush_time / 2);
    EXPECT_EQ(flushes, 3) << "at once, and twice where one was kept";
    next = {.nearly_empty = 1};
    let_pass(10 * flush_time);
    EXPECT_EQ(flushes, 4);
    clock.on_page_opened();
    let_pass(10 * flush_time);
    EXPECT_EQ(flushes, 5) << "a page that is opened behind a pause leaves at once";
}

TEST_F(AFlushClock, DoesNothingForPagesThatHaveLeft) {
    next = {.nearly_empty = 1};
    clock.on_page_opened();
    let_pass(1ms);
    ASSERT_EQ(flushes, 1);
    clock.on_page_opened(); // in the flush time of the one before
    clock.on_all_flushed();
    let_pass(10 * flush_time);
    EXPECT_EQ(flushes, 1);
}

} // namespace
} // namespace netio::pubsub
