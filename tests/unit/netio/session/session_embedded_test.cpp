// SPDX-License-Identifier: Apache-2.0

// Sessions of a loop inside another loop: between two dispatch() calls the outer loop sleeps until
// there is work. This is not a stall, so silence and time-outs count as usual.

#include "tests/unit/netio/session/session_fixture.hpp"

namespace netio::test::session_embedded_test {
namespace {

using namespace std::chrono_literals;

class EmbeddedSession : public SessionTest {
  protected:
    // As long as virtual time allows.
    bool dispatch_until(const std::function<bool()>& done, Duration limit) {
        const TimePoint end = bed.world()->now() + limit;
        bed.loop().dispatch();
        while (!done() && bed.world()->now() < end) {
            bed.world()->sleep_outside();
            bed.loop().dispatch();
        }
        return done();
    }
};

INSTANTIATE_TEST_SUITE_P(Beds, EmbeddedSession, simulated_beds(), bed_name);

TEST_P(EmbeddedSession, AVanishedPeerIsJudgedSilent) {
    const std::uint64_t number = bed.sim()->next_connection();
    connect();
    bed.sim()->cut(number);
    const TimePoint cut = bed.world()->now();
    ASSERT_TRUE(dispatch_until([&] { return !near.closed.empty(); }, 5min));
    EXPECT_EQ(near.closed[0].reason, CloseReason::silent) << near.closed[0].detail;
    EXPECT_LE(bed.world()->now() - cut, 30s + 3 * 5s);
}

TEST_P(EmbeddedSession, AnUnansweredConnectEndsInTime) {
    listener =
        std::make_unique<SessionListener>(bed.transport(),
                                          SessionListener::Options{.service = Service::messages,
                                                                   .listen = {bed.address()},
                                                                   .allow_remote_anonymous = true},
                                          static_cast<SessionListener::Handler&>(*this));
    bed.sim()->ignore_connects(true);
    const TimePoint begin = bed.world()->now();
    dial({});
    ASSERT_TRUE(dispatch_until([&] { return !near.closed.empty(); }, 5min));
    EXPECT_EQ(near.closed[0].reason, CloseReason::connect_timeout) << near.closed[0].detail;
    EXPECT_LE(bed.world()->now() - begin, 5s + 200ms);
}

// The close time begins with the call, however long the outer loop had no work for this loop
// before.
TEST_P(EmbeddedSession, ACloseAfterALongSilenceIsConfirmed) {
    connect({.close_timeout = 2s, .close_limit = 2s});
    dispatch_until([] { return false; }, 1s);
    bed.world()->spend(4s);
    const std::uint64_t connection = bed.sim()->next_connection() - 1;
    bed.sim()->hold(connection);
    near.session->close();
    Timer answer{bed.loop(), [&] { bed.sim()->release(connection); }};
    answer.start(1s);
    ASSERT_TRUE(dispatch_until([&] { return !near.closed.empty(); }, 1min));
    EXPECT_EQ(near.closed[0].reason, CloseReason::orderly) << near.closed[0].detail;
}

TEST_P(EmbeddedSession, ALongBusyOuterLoopEndsNoSession) {
    connect();
    bool over = false;
    Timer end{bed.loop(), [&] { over = true; }};
    end.start(30min);
    for (int i = 0; i < 10; ++i) {
        bed.loop().dispatch();
        bed.world()->spend(2min);
    }
    dispatch_until([&] { return over; }, 1h);
    EXPECT_TRUE(over);
    EXPECT_TRUE(near.closed.empty());
    EXPECT_TRUE(far.closed.empty());
}

// Windows (decision 0015): the outer loop is busy for longer than the delay of the path, and a
// dispatch() that finishes all work ends before the next frames arrive.
class EmbeddedWindow : public EmbeddedSession {
  protected:
    static constexpr std::uint64_t count = 500;
    void connect_and_flood() {
        connect({}, {.receive_buffer_bytes = 1024, .receive_count = 8, .window_limit = 64 * 1024});
        flood(near, count);
    }
    bool done() const { return far.frames.size() == count; }
    std::size_t receives() const { return far.session->counters().receives; }
};

TEST_P(EmbeddedWindow, StaysWhereTheOuterLoopIsSlow) {
    connect_and_flood();
    for (int i = 0; i < 1000 && !done(); ++i) {
        bed.loop().dispatch();
        bed.world()->spend(10ms);
    }
    ASSERT_TRUE(done());
    EXPECT_EQ(receives(), 8U);
}

TEST_P(EmbeddedWindow, StaysWhereTheOuterLoopIsSlowAndThenWaits) {
    connect_and_flood();
    for (int i = 0; i < 1000 && !done(); ++i) {
        bed.loop().dispatch();
        bed.world()->spend(10ms);
        bed.loop().pollable_fd();
        bed.world()->sleep_outside();
    }
    ASSERT_TRUE(done());
    EXPECT_EQ(receives(), 8U);
}

TEST_P(EmbeddedWindow, GrowsWhereTheOuterLoopWaitsAndTheWayIsLong) {
    bed.sim()->network().set_path(0, 0, {.delay = 10ms});
    connect_and_flood();
    for (int i = 0; i < 5000 && !done(); ++i) {
        bed.loop().dispatch();
        bed.loop().pollable_fd();
        bed.world()->sleep_outside();
    }
    ASSERT_TRUE(done());
    EXPECT_EQ(receives(), 64U);
}

INSTANTIATE_TEST_SUITE_P(Beds, EmbeddedWindow, testing::Values(Bed::sim_tcp), bed_name);

} // namespace
} // namespace netio::test::session_embedded_test
