// SPDX-License-Identifier: Apache-2.0

// A session with a peer that breaks rules in ways that no transport allows: frames out of order,
// without a credit, with credits that were never used. And the limits of its numbers.

#include "tests/unit/netio/session/scripted_session.hpp"

namespace netio::test::session_rules_test {
namespace {

using SessionRules = ScriptedSession;

TEST_F(SessionRules, AFrameOutOfOrderEndsIt) {
    for (const std::uint32_t off : {1U, UINT32_MAX}) {
        open();
        wire().bring({.kind = a_message});
        EXPECT_FALSE(wire().closed);
        wire().bring({.kind = a_message, .sequence = off});
        EXPECT_TRUE(wire().closed);
        EXPECT_EQ(near.frames.size(), 1U);
        expect_end(CloseReason::protocol_error, "out of order");
    }
}

TEST_F(SessionRules, AFrameWithoutACreditEndsIt) {
    open({.receive_count = 4}, peer(4));
    // One of four credits was used by the open frame, and three frames return two each; four more
    // may come.
    for (int frame = 0; frame < 10; ++frame)
        wire().bring({.kind = a_message});
    EXPECT_EQ(sent(FrameKind::credit), 3);
    EXPECT_FALSE(wire().closed);
    wire().bring({.kind = a_message});
    EXPECT_TRUE(wire().closed);
    EXPECT_EQ(near.frames.size(), 10U);
    expect_end(CloseReason::protocol_error, "sent without a credit");
}

TEST_F(SessionRules, CreditsThatWereNeverUsedEndIt) {
    open();
    wire().bring({.kind = a_message, .credits = 1}); // for the open frame
    EXPECT_EQ(near.session->counters().credits, 100U);
    wire().bring({.kind = a_message, .credits = 1});
    EXPECT_TRUE(wire().closed);
    expect_end(CloseReason::protocol_error, "granted more credits than it has receives");
}

TEST_F(SessionRules, AWindowGrowsToTheLargestOfASessionAndNoFurther) {
    open();
    wire().bring(FrameKind::window, number(most_session_receive_count));
    EXPECT_FALSE(wire().closed);
    EXPECT_EQ(near.session->counters().credits, most_session_receive_count - 1U);
    open();
    wire().bring(FrameKind::window, number(most_session_receive_count + 1U));
    EXPECT_TRUE(wire().closed);
    expect_end(CloseReason::protocol_error, "16385 receives, which is impossible");
}

TEST_F(SessionRules, AWindowGrowsOnceThePeerCanBeNotified) {
    const auto late = [this] {
        pass(std::chrono::milliseconds{20});
        wire().bring({.kind = a_message, .waited = true});
    };
    const auto begin = [this] {
        open({.receive_buffer_bytes = 1024,
              .receive_count = 8,
              .window_limit = 65536,
              .send_count = 8},
             peer(100));
        wire().takes_more = true;
    };
    begin();
    int until_it_grows = 0;
    for (; sent(FrameKind::window) == 0; ++until_it_grows) {
        ASSERT_LT(until_it_grows, 50);
        late();
        wire().complete();
    }
    begin();
    for (int frame = 0; frame < until_it_grows; ++frame) {
        // The returned credits of every four arrivals then need the last slot.
        if (frame % 4 == 0 && frame + 4 < until_it_grows) {
            wire().complete();
            while (near.session->has_capacity())
                ASSERT_EQ(near.session->send({.kind = a_message}, std::nullopt), Status::ok);
        }
        late();
    }
    EXPECT_EQ(sent(FrameKind::window), 0) << "no slot is free";
    EXPECT_EQ(near.session->counters().receives, 8U);
    wire().complete();
    EXPECT_EQ(sent(FrameKind::window), 1);
    EXPECT_EQ(near.session->counters().receives, 16U);
}

TEST_F(SessionRules, TheConnectedEventAfterItsEndChangesNothing) {
    dial();
    wire().bring({.kind = a_message});
    EXPECT_TRUE(wire().closed);
    wire().accept(peer());
    EXPECT_EQ(near.opened, 0);
    EXPECT_TRUE(wire().sent.empty());
    expect_end(CloseReason::protocol_error, "before it had accepted");
}

// --- requests of the user -------------------------------------------------------------------

TEST_F(SessionRules, WithoutACreditThereIsNoRoomAndOneNotification) {
    open({}, peer(4));
    EXPECT_TRUE(near.session->has_capacity());
    for (int frame = 0; frame < 2; ++frame)
        ASSERT_EQ(near.session->send({.kind = a_message}, std::nullopt), Status::ok);
    EXPECT_FALSE(near.session->has_capacity());
    EXPECT_FALSE(near.session->request_capacity());
    wire().complete();
    EXPECT_EQ(near.room, 0) << "credits are missing, not slots";
    wire().bring({.kind = static_cast<std::uint8_t>(FrameKind::credit), .credits = 3});
    EXPECT_EQ(near.room, 1);
    EXPECT_TRUE(near.session->has_capacity());
}

TEST_F(SessionRules, NothingIsToBeHadOnceItCloses) {
    RegisteredBuffer memory{100};
    const Slice slice = memory.slice();
    open();
    EXPECT_TRUE(near.session->request_capacity() && near.session->request_write_capacity());
    near.session->close();
    EXPECT_FALSE(near.session->has_capacity());
    EXPECT_FALSE(near.session->request_capacity());
    EXPECT_FALSE(near.session->request_write_capacity());
    EXPECT_EQ(near.session->write({.slices = {&slice, 1}, .target = {}, .notice = 1}, Cookie{1}),
              Status::closed);
    EXPECT_EQ(near.session->counters().frames_sent, 0U);
}

// --- a first frame that ends the session ----------------------------------------------------

TEST_F(SessionRules, TheFirstOfSeveralReasonsToEndCounts) {
    open();
    near.session->fail(CloseReason::protocol_error, "the first");
    near.session->fail(CloseReason::failed, "the second");
    near.session->abort();
    expect_end(CloseReason::protocol_error, "the first");
}

TEST_F(SessionRules, AnAbortAfterAResumeReportsOneEnd) {
    open();
    near.session->pause();
    for (int frame = 0; frame < 3; ++frame)
        wire().bring({.kind = a_message});
    near.session->resume();
    near.session->abort();
    expect_end(CloseReason::local, "");
    pass(std::chrono::seconds{1});
    EXPECT_EQ(near.closed.size(), 1U);
    EXPECT_TRUE(near.frames.empty());
}

TEST_F(SessionRules, ACloseAfterThePeersEndDropsNoArrivedFrame) {
    open();
    near.session->pause();
    for (int frame = 0; frame < 3; ++frame)
        wire().bring({.kind = a_message});
    wire().end(CloseReason::lost);
    near.session->close();
    pass(std::chrono::seconds{1});
    EXPECT_TRUE(near.closed.empty()) << "it waits for its user";
    near.session->resume();
    pass(std::chrono::seconds{1});
    EXPECT_EQ(near.frames.size(), 3U);
    ASSERT_EQ(near.closed.size(), 1U);
    EXPECT_EQ(near.closed[0].reason, CloseReason::lost);
}

} // namespace
} // namespace netio::test::session_rules_test
