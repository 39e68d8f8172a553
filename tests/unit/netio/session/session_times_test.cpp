// SPDX-License-Identifier: Apache-2.0

// The times of a session with a peer whose host status is unknown: what it must receive, what it
// must send, and how long it waits.

#include "netio/session/shutdown.hpp"
#include "tests/unit/netio/session/scripted_session.hpp"

namespace netio::test::session_times_test {
namespace {

using namespace std::chrono_literals;

class SessionTimes : public ScriptedSession {
  protected:
    static inline const SessionOptions beating{.heartbeat = 1s, .dead_after = 5s};
    static inline const SessionOptions closing{
        .heartbeat = 0s, .dead_after = 0s, .close_timeout = 3s, .close_limit = 60s};
};

// --- signs of life --------------------------------------------------------------------------

TEST_F(SessionTimes, APeerThatBreaksItsPromiseToSpeakIsSilent) {
    open(beating, peer(100, 1s));
    pass(4500ms);
    EXPECT_FALSE(wire().closed) << "its acceptance was a sign of life";
    for (int i = 0; i < 20; ++i) {
        wire().bring(FrameKind::heartbeat);
        pass(1s);
    }
    ASSERT_FALSE(wire().closed);
    pass(3s);
    EXPECT_FALSE(wire().closed);
    pass(3s);
    EXPECT_TRUE(wire().closed);
    expect_end(CloseReason::silent, "no sign of life from the scripted peer for more than 5000 ms");
}

TEST_F(SessionTimes, APeerThatHasPromisedNothingMayBeSilent) {
    open(beating);
    pass(10min);
    EXPECT_FALSE(wire().closed);
}

TEST_F(SessionTimes, SentFramesReplaceHeartbeats) {
    open(beating);
    for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(near.session->send({.kind = a_message}, std::nullopt), Status::ok);
        pass(900ms);
    }
    EXPECT_EQ(sent(FrameKind::heartbeat), 0);
    pass(3500ms);
    EXPECT_EQ(sent(FrameKind::heartbeat), 3);
}

TEST_F(SessionTimes, WhatWasRefusedIsNoSignOfLife) {
    RegisteredBuffer memory{5000}; // more than the peer accepts
    const Slice slice = memory.slice();
    open(beating);
    for (int i = 0; i < 10; ++i) {
        pass(510ms);
        ASSERT_EQ(near.session->send({.kind = a_message, .slices = {&slice, 1}}, std::nullopt),
                  Status::too_large);
    }
    EXPECT_EQ(sent(FrameKind::heartbeat), 4) << "the open frame was the sign in the first second";
}

TEST_F(SessionTimes, NoTimeOutFiresAfterItsEnd) {
    open({.heartbeat = 0s, .dead_after = 4s}, peer(100, 1s));
    wire().end(CloseReason::lost);
    ASSERT_EQ(near.closed.size(), 1U);
    pass(1min);
    EXPECT_EQ(near.closed.size(), 1U) << "silence is not reported as well";
}

// --- closing --------------------------------------------------------------------------------

// A peer that is alive and receives nothing sends a heartbeat.
TEST_F(SessionTimes, AHeartbeatWithoutCreditsIsNoProgressOfAClose) {
    for (const std::uint16_t credits : {std::uint16_t{0}, std::uint16_t{1}}) {
        open(closing);
        ASSERT_EQ(near.session->send({.kind = a_message}, std::nullopt), Status::ok);
        near.session->close();
        wire().complete();
        for (int i = 0; i < 3; ++i) {
            EXPECT_FALSE(wire().closed);
            pass(900ms);
            wire().bring(
                {.kind = static_cast<std::uint8_t>(FrameKind::heartbeat), .credits = credits});
        }
        pass(1s); // 3 s for the close, and time for the frame that reports it
        EXPECT_EQ(wire().closed, credits == 0);
        pass(3s);
        EXPECT_TRUE(wire().closed);
        expect_end(CloseReason::unconfirmed, "nothing more for 3000 ms");
    }
}

TEST_F(SessionTimes, ThePeerIsNotBlamedForTheUserOfThisSide) {
    open(closing);
    near.confirms = false;
    near.session->close();
    wire().bring(FrameKind::shutdown);
    EXPECT_EQ(near.shut_down, 1);
    wire().bring(FrameKind::shutdown_ack, number(0));
    wire().complete();
    pass(10s);
    ASSERT_FALSE(wire().closed);
    near.session->confirm();
    EXPECT_EQ(sent(FrameKind::shutdown_ack), 1);
    wire().complete();
    EXPECT_TRUE(wire().closed);
    expect_end(CloseReason::orderly, "");
}

TEST_F(SessionTimes, AfterConfirmingThePeersCloseItWaitsALimitedTime) {
    open(closing);
    wire().bring(FrameKind::shutdown);
    EXPECT_EQ(sent(FrameKind::shutdown), 1);
    EXPECT_EQ(sent(FrameKind::shutdown_ack), 1);
    wire().complete();
    pass(2900ms);
    EXPECT_FALSE(wire().closed);
    pass(200ms);
    EXPECT_TRUE(wire().closed);
    expect_end(CloseReason::orderly, "");
}

// --- aborting -------------------------------------------------------------------------------

class SessionCutsOff : public SessionTimes {
  protected:
    void cut_off() { near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s); }
};

TEST_F(SessionCutsOff, SendsNothingAfterTheReasonAndReceivesNothing) {
    open({.heartbeat = 100ms});
    cut_off();
    ASSERT_EQ(sent(FrameKind::shutdown), 1);
    EXPECT_EQ(wire().sent.back().body_bytes(), abort_reason_bytes);
    const std::size_t frames = wire().sent.size();
    pass(200ms);
    wire().bring({.kind = a_message});
    EXPECT_EQ(wire().sent.size(), frames);
    EXPECT_TRUE(near.frames.empty());
    EXPECT_FALSE(wire().closed) << "the reason is still in flight";
    pass(60ms);
    EXPECT_TRUE(wire().closed) << "it has 250 ms";
    expect_end(CloseReason::too_slow, "it took nothing");
}

TEST_F(SessionCutsOff, AtOnceWhenTheReasonHasLeft) {
    open();
    cut_off();
    EXPECT_FALSE(wire().closed);
    wire().complete();
    EXPECT_TRUE(wire().closed);
}

TEST_F(SessionCutsOff, OnceAndTheSecondTimeDoesNotHurryIt) {
    open();
    cut_off();
    cut_off();
    EXPECT_FALSE(wire().closed);
    EXPECT_EQ(sent(FrameKind::shutdown), 1);
}

TEST_F(SessionCutsOff, AtOnceWhereSomethingIsStuck) {
    dial();
    wire().accept(peer()); // the open frame is not completed
    cut_off();
    EXPECT_TRUE(wire().closed);
    EXPECT_EQ(sent(FrameKind::shutdown), 0);
}

TEST_F(SessionCutsOff, AtOnceWhereNoCreditIsLeftAtAll) {
    open({.receive_count = 4}, peer(4));
    for (int frame = 0; frame < 6; ++frame) // returning their credits uses up those of this side
        wire().bring({.kind = a_message});
    wire().complete();
    ASSERT_EQ(near.session->counters().credits, 0U);
    cut_off();
    EXPECT_TRUE(wire().closed);
    EXPECT_EQ(sent(FrameKind::shutdown), 0);
}

} // namespace
} // namespace netio::test::session_times_test
