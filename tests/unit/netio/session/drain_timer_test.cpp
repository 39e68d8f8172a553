// SPDX-License-Identifier: Apache-2.0
#include "netio/session/drain_timer.hpp"

#include "tests/unit/netio/session/session_fixture.hpp"

namespace netio::test::drain_timer_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// GracefulClose has its own times; those of the session are the defaults.
class GracefulCloseTest : public SessionTest {
  protected:
    void pass(Duration time) {
        bool passed = false;
        Timer timer{bed.loop(), [&] { passed = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return passed; }));
    }
    GracefulClose closing{bed.loop(), {.close_timeout = 2s, .close_limit = 5s}};
};

TEST_P(GracefulCloseTest, CountsFromTheFirstCallHoweverOftenItIsCalled) {
    connect();
    near.at_closed = [&] { closing.forget(); };
    const TimePoint begin = bed.loop().now();
    closing.begin(*near.session);
    Timer again{bed.loop(), [&] {
                    closing.begin(*near.session);
                    closing.on_progress();
                    again.start(1s);
                }};
    again.start(1s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    again.cancel();
    EXPECT_EQ(bed.loop().now() - begin, 5s);
    EXPECT_EQ(near.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("everything within 5000 ms"));
}

TEST_P(GracefulCloseTest, BeforeItHasBegunNothingCounts) {
    connect();
    closing.on_progress();
    closing.finish();
    pass(30s);
    EXPECT_FALSE(closing.has_begun());
    EXPECT_TRUE(near.closed.empty());
    EXPECT_TRUE(near.session->is_open());
}

TEST_P(GracefulCloseTest, OnceAllHasLeftTheSessionHasItsOwnTime) {
    connect();
    far.confirms = false;
    closing.begin(*near.session);
    closing.finish();
    closing.finish();
    closing.on_progress();
    pass(4s);
    EXPECT_TRUE(near.closed.empty()) << near.closed[0].detail;
    far.session->confirm();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(GracefulCloseTest, WhatItHasForgottenItDoesNotEnd) {
    connect();
    closing.begin(*near.session);
    EXPECT_TRUE(closing.has_begun());
    closing.forget();
    EXPECT_FALSE(closing.has_begun());
    pass(30s);
    EXPECT_TRUE(near.closed.empty());
}

INSTANTIATE_TEST_SUITE_P(Beds, GracefulCloseTest, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::drain_timer_test
