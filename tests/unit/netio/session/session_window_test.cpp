// SPDX-License-Identifier: Apache-2.0

// Windows over a path with a long delay: they grow if the peer waits for credits, up to their
// limit.

#include "tests/unit/netio/session/session_fixture.hpp"

namespace netio::test::session_window_test {
namespace {

using namespace std::chrono_literals;

const SessionOptions small_windows{
    .receive_buffer_bytes = 1024, .receive_count = 8, .window_limit = 64 * 1024, .send_count = 64};

class SessionWindow : public SessionTest {
  protected:
    void lengthen_the_way(Duration delay) { bed.sim()->network().set_path(0, 0, {.delay = delay}); }
    std::size_t receives() const { return far.session->counters().receives; }
    void pass(Duration time) {
        bool passed = false;
        Timer timer{bed.loop(), [&] { passed = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return passed; }));
    }
    // The time that `count` frames need.
    Duration carry(std::uint64_t count) {
        far.frames.clear();
        const TimePoint begin = bed.loop().now();
        flood(near, count);
        EXPECT_TRUE(bed.run_until([&] { return far.frames.size() == count; }));
        expect_flood(far, count);
        near.at_room = nullptr;
        return bed.loop().now() - begin;
    }
};

TEST_P(SessionWindow, GrowsToItsLimitWhereTheWayIsLong) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    EXPECT_EQ(receives(), 8U);
    carry(500);
    EXPECT_EQ(receives(), 64U);
    // 63 frames per round trip instead of 7.
    EXPECT_LT(carry(1200), 20ms * 1200 / 25);
    EXPECT_EQ(receives(), 64U);
    EXPECT_EQ(near.session->counters().credits + near.session->counters().unconfirmed, 64U);
    EXPECT_EQ(bed.transport().window_budget().used(), 56U * 1024U);
}

TEST_P(SessionWindow, StaysAsItIsWhereTheWayIsShort) {
    connect({}, small_windows);
    carry(5000);
    EXPECT_EQ(receives(), 8U);
}

TEST_P(SessionWindow, StaysAsItIsWhereItMayNotGrow) {
    SessionOptions options = small_windows;
    options.window_limit = 0;
    connect({}, options);
    lengthen_the_way(10ms);
    carry(200);
    EXPECT_EQ(receives(), 8U);
}

TEST_P(SessionWindow, StaysUnchangedIfThePeerSendsLittle) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    for (int i = 0; i < 50; ++i) {
        send(near, 3);
        pass(50ms);
    }
    EXPECT_EQ(far.frames.size(), 150U);
    EXPECT_EQ(receives(), 8U);
}

TEST_P(SessionWindow, ShrinksAgainWhenItIsNotUsed) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    carry(500);
    ASSERT_EQ(receives(), 64U);
    const std::uint64_t before = far.frames.size();
    for (int i = 0; i < 400; ++i) {
        send(near, 1);
        pass(500ms);
    }
    EXPECT_EQ(far.frames.size(), before + 400);
    EXPECT_EQ(receives(), 8U);
    EXPECT_EQ(bed.transport().window_budget().used(), 0U);
    EXPECT_LE(near.session->counters().credits, 8U);
    EXPECT_LE(near.session->counters().unconfirmed, 8U);
    // It grows again.
    carry(500);
    EXPECT_EQ(receives(), 64U);
}

// With halves, every credit would be half a round trip late, and only five of eight frames would
// arrive.
TEST_P(SessionWindow, FillsALongWay) {
    connect({.receive_count = 8, .window_limit = 0}, small_windows);
    lengthen_the_way(10ms);
    carry(500);
    ASSERT_EQ(receives(), 64U);
    // Four fifths of the window per round trip; header and number are 16 bytes.
    const double frames_per_second = 64 * 0.8 / 0.02;
    bed.sim()->network().set_path(0, 0,
                                  {.delay = 10ms, .bytes_per_second = 16 * frames_per_second});
    EXPECT_LT(std::chrono::duration<double>(carry(3000)).count(), 3000 / frames_per_second / 0.9);
}

TEST_P(SessionWindow, OfASideThatReceivesNothingShrinks) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    carry(500);
    ASSERT_EQ(receives(), 64U);
    pass(10s);
    EXPECT_EQ(receives(), 64U);
    pass(60s);
    EXPECT_EQ(receives(), 8U);
    EXPECT_EQ(bed.transport().window_budget().used(), 0U);
    EXPECT_EQ(near.session->counters().receives, 64U) << "of the window that it began with";
    // It grows again.
    carry(500);
    EXPECT_EQ(receives(), 64U);
}

TEST_P(SessionWindow, AnIdleOneIsTalkedToOnlyUntilItHasShrunk) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    carry(500);
    pass(60s);
    pass(60s);
    ASSERT_EQ(receives(), 8U);
    const std::uint64_t before = bed.loop().turns().count();
    pass(60s);
    // Heartbeats every 5 s on both sides, sent and received, and sometimes credits.
    EXPECT_LE(bed.loop().turns().count() - before, 3U * 2U * 12U + 20U);
}

TEST_P(SessionWindow, APausedSideLeavesCreditsForLaterFrames) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    carry(500);
    far.session->pause();
    send(near, 10);
    pass(30s);
    EXPECT_GE(near.session->counters().credits, 32U - 6U) << "half of them, and heartbeats";
    far.session->resume();
    pass(1s);
    EXPECT_EQ(far.frames.size(), 510U);
}

TEST_P(SessionWindow, APausedReceiverHoldsNoMoreThanItsWindow) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    carry(500);
    far.session->pause();
    flood(near, 500);
    pass(1s);
    EXPECT_EQ(far.frames.size(), 500U);
    EXPECT_EQ(receives(), 64U);
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == 1000; }));
}

// The user pauses after each frame in turn; sometimes a grant is answered while frames wait, and
// the first waiting frame is at any position.
TEST_P(SessionWindow, KeepsTheOrderOfWhatWaitsWhenItGrows) {
    constexpr std::uint64_t count = 200;
    std::size_t grown_meanwhile = 0;
    for (std::uint64_t pause_at = 1; pause_at <= 40; ++pause_at) {
        near = End{};
        far = End{};
        connect({}, small_windows);
        lengthen_the_way(10ms);
        std::size_t before = 0;
        far.at_frame = [&] {
            if (far.frames.size() != pause_at) return;
            before = receives();
            far.session->pause();
        };
        flood(near, count);
        pass(1s);
        ASSERT_EQ(far.frames.size(), pause_at);
        if (receives() > before) ++grown_meanwhile;
        far.session->resume();
        ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == count; }));
        expect_flood(far, count);
        near.session.reset();
        far.session.reset();
    }
    EXPECT_GT(grown_meanwhile, 0U);
}

TEST_P(SessionWindow, EndsInOrderWhereverItIs) {
    for (const std::uint64_t count : {1U, 20U, 50U, 500U}) {
        near = End{};
        far = End{};
        connect({}, small_windows);
        lengthen_the_way(10ms);
        carry(count);
        near.session->close();
        ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
        expect_end(near, CloseReason::orderly, 0);
        expect_end(far, CloseReason::orderly, 0);
        near.session.reset();
        far.session.reset();
        EXPECT_EQ(bed.transport().window_budget().used(), 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionWindow, testing::Values(Bed::sim_tcp), bed_name);

// On devices whose queues cannot grow.
class SessionWindowOnADevice : public SessionWindow {};

TEST_P(SessionWindowOnADevice, StaysAsItIs) {
    connect({}, small_windows);
    lengthen_the_way(10ms);
    carry(200);
    EXPECT_EQ(receives(), 8U);
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionWindowOnADevice, testing::Values(Bed::sim_verbs), bed_name);

} // namespace
} // namespace netio::test::session_window_test
