// SPDX-License-Identifier: Apache-2.0

// How a session ends when it is closed or aborted, and what both sides report.

#include "tests/unit/netio/session/session_fixture.hpp"

#include <tuple>

namespace netio::test::session_close_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using SessionClose = SessionTest;

TEST_P(SessionClose, CloseDeliversWhatWasSentAndBothEndInOrder) {
    connect();
    flood(near, 40);
    near.session->close();
    EXPECT_FALSE(near.session->is_open());
    EXPECT_EQ(near.session->send({.kind = 20}, Cookie{99}), Status::closed);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_flood(far, 40);
    EXPECT_EQ(near.sent.size(), 40U);
    EXPECT_EQ(near.unsent, 0);
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
    EXPECT_EQ(far.shut_down, 1);
    EXPECT_EQ(near.shut_down, 1);
}

TEST_P(SessionClose, BothClosingAtOnceEndInOrder) {
    connect();
    send(near, 20);
    send(far, 20);
    near.session->close();
    far.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    for (const End* end : {&near, &far}) {
        EXPECT_EQ(end->frames.size(), 20U);
        expect_end(*end, CloseReason::orderly, 0);
    }
}

TEST_P(SessionClose, FramesSentBeforeThePeerSeesTheCloseArrive) {
    connect();
    send(far, 30);
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.frames.size(), 30U);
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(SessionClose, UnreadFramesAreReportedToThePeer) {
    connect();
    send(near, 7);
    far.at_frame = [&] {
        if (far.frames.size() > 4) far.session->add_unread(1);
    };
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::unconfirmed, 3);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("3 frames unread"));
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(SessionClose, TheShutdownIsNotConfirmedBeforeTheUserWasGivenEverything) {
    connect();
    send(near, 7);
    far.confirms = false;
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return far.shut_down == 1; }));
    EXPECT_TRUE(far.session->awaits_confirmation());
    EXPECT_EQ(far.session->send({.kind = 20}, Cookie{99}), Status::closed);
    for (int i = 0; i < 100; ++i)
        bed.loop().run_once();
    EXPECT_TRUE(near.closed.empty());
    far.session->confirm();
    far.session->confirm();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(SessionClose, ACloseWhosePeerAbortsIsUnconfirmed) {
    connect();
    send(near, 7);
    far.at_frame = [&] {
        if (far.frames.size() == 3) far.session->abort();
    };
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::unconfirmed, 7);
    expect_end(far, CloseReason::local, 0);
}

TEST_P(SessionClose, AnAbortWhileClosingReportsWhatIsUnconfirmed) {
    connect();
    send(near, 7);
    near.session->close();
    near.session->abort();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::local, 7);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("7 frames unconfirmed"));
}

TEST_P(SessionClose, AbortCancelsOutstandingSendsAndThenReportsTheEnd) {
    connect();
    RegisteredBuffer memory{60000};
    const Slice slice = memory.slice();
    for (std::uint64_t i = 0; i < 20; ++i)
        ASSERT_EQ(near.session->send({.kind = 20, .slices = {&slice, 1}}, Cookie{i}), Status::ok);
    bool all_before_the_last_word = false;
    near.at_closed = [&] { all_before_the_last_word = near.sent.size() == 20; };
    near.session->abort();
    EXPECT_TRUE(near.sent.empty()) << "no callback inside the call";
    EXPECT_EQ(near.session->send({.kind = 20}, Cookie{99}), Status::closed);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_TRUE(all_before_the_last_word);
    expect_end(near, CloseReason::local, 20);
    expect_end(far, CloseReason::lost, 0);
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionClose, all_beds(), bed_name);

// --- in virtual time ------------------------------------------------------------------------

using SimulatedClose = SessionTest;

TEST_P(SimulatedClose, AnUnansweredCloseEndsAfterItsTimeAndReportsWhatIsUnconfirmed) {
    connect({.heartbeat = 0ms, .dead_after = 0ms, .close_timeout = 700ms});
    bed.sim()->cut(1);
    send(near, 5);
    const TimePoint begin = bed.loop().now();
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::unconfirmed, 5);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("700 ms"));
    EXPECT_THAT(near.closed[0].detail, HasSubstr("5 frames unconfirmed"));
    EXPECT_EQ(bed.loop().now() - begin, 700ms);
}

TEST_P(SimulatedClose, AConnectionThatBreaksWhileClosingLeavesItUnconfirmed) {
    connect({.heartbeat = 0ms, .dead_after = 0ms});
    send(near, 5);
    near.session->close();
    bed.sim()->sever(1);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), 0U);
    expect_end(near, CloseReason::unconfirmed, 5);
    expect_end(far, CloseReason::lost, 0);
}

TEST_P(SimulatedClose, APeerThatFallsSilentWhileClosingLeavesItUnconfirmed) {
    SessionOptions options{.heartbeat = 1000ms, .dead_after = 5000ms};
    options.close_timeout = options.close_limit = 50s;
    connect(options, {.heartbeat = 1000ms, .dead_after = 5000ms});
    bed.sim()->cut(1);
    send(near, 5);
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::unconfirmed, 5);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("no sign of life"));
}

// Neither side knows of the other's close when it closes, and this side's user is slower than both.
TEST_P(SimulatedClose, APeerThatClosesTooGetsAFullCloseTime) {
    const SessionOptions options{.heartbeat = 0ms, .dead_after = 0ms, .close_timeout = 2s};
    connect(options, options);
    const std::uint64_t far_end = bed.sim()->next_connection() - 1;
    send(far, 1); // so that it owes no credits, whose return would be progress in itself
    ASSERT_TRUE(bed.run_until([&] { return near.frames.size() == 1; }));
    near.confirms = false;
    bed.sim()->hold(far_end);
    near.session->close();
    Timer close{bed.loop(), [&] { far.session->close(); }};
    close.start(1500ms);
    Timer release{bed.loop(), [&] { bed.sim()->release(far_end); }};
    release.start(3s);
    ASSERT_TRUE(bed.run_until([&] { return far.shut_down == 1 || !near.closed.empty(); }));
    ASSERT_TRUE(near.closed.empty()) << near.closed[0].detail;
    near.session->confirm();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

// Not even a shutdown frame can be sent, because the peer has no receive for it.
TEST_P(SimulatedClose, ACloseWithoutACreditEndsAtItsLimit) {
    connect({.heartbeat = 10s, .dead_after = 60s, .close_timeout = 2s, .close_limit = 3s},
            {.receive_count = 4});
    bed.sim()->cut(1);
    while (near.session->send({.kind = 20}, std::nullopt) == Status::ok)
        ;
    const TimePoint begin = bed.loop().now();
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_LT(bed.loop().now() - begin, 4s);
}

// The peer receives nothing until 1.5 s after the close, and then everything; its user does not
// confirm.
class SlowClose : public SessionTest {
  protected:
    void close(std::chrono::milliseconds timeout, std::chrono::milliseconds limit) {
        connect({.close_timeout = timeout, .close_limit = limit});
        far.confirms = false;
        bed.sim()->hold(bed.sim()->next_connection() - 1);
        send(near, 60);
        begin = bed.loop().now();
        near.session->close();
        pass(1500ms);
        ASSERT_TRUE(near.closed.empty());
        bed.sim()->release(bed.sim()->next_connection() - 1);
    }
    void pass(Duration time) {
        bool passed = false;
        Timer timer{bed.loop(), [&] { passed = true; }};
        timer.start_at(begin + time);
        ASSERT_TRUE(bed.run_until([&] { return passed; }));
    }
    TimePoint begin;
};

TEST_P(SlowClose, GoesOnAsLongAsThePeerTakesSomething) {
    close(2s, 60s);
    pass(3s);
    ASSERT_TRUE(near.closed.empty());
    far.session->confirm();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), 60U);
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(SlowClose, EndsWhenThePeerMakesNoMoreProgress) {
    close(2s, 60s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("2000 ms"));
    EXPECT_GE(bed.loop().now() - begin, 3500ms);
    expect_end(far, CloseReason::lost, 0);
}

TEST_P(SlowClose, IsBoundedInAllByItsLimit) {
    close(2s, 3s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("within 3000 ms"));
    EXPECT_EQ(bed.loop().now() - begin, 3s);
}

// This process stops for 30 s, one second after the close, and the peer receives nothing until
// then.
class StoppedClose : public SlowClose {
  protected:
    void close_and_stop() {
        connect({.close_timeout = 2s, .close_limit = 5s});
        far.confirms = false;
        bed.sim()->hold(bed.sim()->next_connection() - 1);
        send(near, 60);
        begin = bed.loop().now();
        near.session->close();
        pass(1s);
        bed.world()->spend(30s);
    }
};

TEST_P(StoppedClose, IsNotTakenFromTheLimit) {
    close_and_stop();
    bed.sim()->release(bed.sim()->next_connection() - 1);
    pass(32s);
    ASSERT_TRUE(near.closed.empty()) << near.closed[0].detail;
    EXPECT_EQ(far.frames.size(), 60U);
    far.session->confirm();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(StoppedClose, IsNotSaidToHaveTakenAllOfTheLimit) {
    close_and_stop();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_THAT(near.closed[0].detail, HasSubstr("nothing more for 2000 ms"));
}

INSTANTIATE_TEST_SUITE_P(Beds, StoppedClose, simulated_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, SlowClose, simulated_beds(), bed_name);

TEST_P(SimulatedClose, ABreakAtAnySendOfAClosingSessionNeverLooksOrderly) {
    for (std::size_t nth = 1; nth < 16; ++nth) {
        for (const std::uint64_t victim : {2U, 1U}) {
            near = {};
            far = {};
            connect({.receive_count = 6, .send_count = 5}, {.receive_count = 6, .send_count = 5});
            bed.sim()->break_at_send(bed.sim()->next_connection() - victim, nth);
            const auto accepted = [](End& from, std::size_t count) {
                std::size_t done = 0;
                while (done < count && from.session->send({.kind = 20}, std::nullopt) == Status::ok)
                    ++done;
                return done;
            };
            const std::size_t by_near = accepted(near, 3);
            const std::size_t by_far = accepted(far, 2);
            near.session->close();
            ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
            for (const auto& [from, to, sent] :
                 {std::tuple{&near, &far, by_near}, {&far, &near, by_far}}) {
                const Closed& closed = from->closed[0];
                EXPECT_TRUE(closed.reason != CloseReason::orderly || to->frames.size() == sent);
                EXPECT_GE(closed.unconfirmed_frames + to->frames.size(), sent)
                    << "broken at send " << nth << " of " << victim << ": " << closed.detail;
                EXPECT_NE(closed.reason, CloseReason::local);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedClose, simulated_beds(), bed_name);

// --- aborts

class SessionAbort : public SessionTest {
  protected:
    std::size_t send_until_refused() {
        std::size_t sent = 0;
        while (near.session->send({.kind = 20}, Cookie{sent}) == Status::ok)
            ++sent;
        return sent;
    }
};

INSTANTIATE_TEST_SUITE_P(Beds, SessionAbort, all_beds(), bed_name);

// Only the reserved credit is left.
TEST_P(SessionAbort, SendsThePeerTheReasonAndTheDuration) {
    connect({}, {.receive_count = 8});
    far.session->pause();
    const std::size_t sent = send_until_refused();
    ASSERT_TRUE(bed.run_until([&] { return near.sent.size() == sent; }));
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 10s);
    near.session->cut_off(CloseReason::too_slow, "once is enough", 11s);
    EXPECT_EQ(near.session->send({.kind = 20}, Cookie{99}), Status::closed);
    EXPECT_TRUE(near.closed.empty()) << "no callback inside the call";
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::too_slow, sent);
    EXPECT_EQ(near.closed[0].detail, "it took nothing");
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), sent) << "frames sent before the abort";
    EXPECT_EQ(far.closed[0].reason, CloseReason::too_slow);
    EXPECT_THAT(far.closed[0].detail, HasSubstr("nothing for 10000 ms"));
}

TEST_P(SessionAbort, MayBeFollowedByAnAbortOrByTheEndOfTheSession) {
    connect();
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s);
    near.session->abort();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::too_slow);
    near = {};
    far = {};
    connect();
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s);
    near.session.reset();
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
}

TEST_P(SessionAbort, ByAPeerEndsWhatTheOtherSideWantedToCloseInOrder) {
    connect();
    send(far, 3);
    far.session->close();
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::too_slow);
    EXPECT_NE(far.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(far.closed[0].unconfirmed_frames, 3U);
}

using SessionAbortAtOnce = SessionAbort;
INSTANTIATE_TEST_SUITE_P(Beds, SessionAbortAtOnce, simulated_beds(), bed_name);

// The memory of blocked frames is needed.
TEST_P(SessionAbortAtOnce, WaitsForNothingThatIsStuck) {
    connect();
    bed.sim()->cut(bed.sim()->next_connection() - 1);
    const std::size_t sent = send_until_refused();
    const TimePoint begin = bed.world()->now();
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_LE(bed.world()->now() - begin, 250ms);
    EXPECT_EQ(near.sent.size(), sent);
}

// Over a path that was slow and then blocked: a connection keeps its order also after its end.
TEST_P(SessionAbortAtOnce, FramesBeforeTheEndArriveInOrder) {
    connect();
    SimNetwork& network = bed.sim()->network();
    network.set_path(0, 0, {.delay = 100ms});
    flood(near, 1);
    network.set_path(0, 0, {.blocked = true});
    near.at_room = nullptr;
    send(near, 1);
    near.session.reset();
    network.set_path(0, 0, {});
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_EQ(far.closed[0].reason, CloseReason::lost) << far.closed[0].detail;
    ASSERT_EQ(far.frames.size(), 2U);
    EXPECT_EQ(far.frames[0].size(), 8U);
}

} // namespace
} // namespace netio::test::session_close_test
