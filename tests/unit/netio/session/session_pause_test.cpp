// SPDX-License-Identifier: Apache-2.0

// A session whose service has paused it.

#include "tests/unit/netio/session/session_fixture.hpp"

#include <algorithm>
#include <vector>

namespace netio::test::session_pause_test {
namespace {

using namespace std::chrono_literals;

class SessionPause : public SessionTest {
  protected:
    // Sends as many frames as possible while the far side is paused.
    std::size_t send_until_refused() {
        std::size_t sent = 0;
        for (int round = 0; round < 5; ++round) {
            while (near.session->send({.kind = 20}, std::nullopt) == Status::ok)
                ++sent;
            settle();
        }
        return sent;
    }
    // Everything in flight arrives; on the fabric, what the kernel has already.
    void settle() {
        if (bed.sim() == nullptr) {
            for (int turn = 0; turn < 500; ++turn)
                bed.loop().run_once();
            return;
        }
        bool settled = false;
        Timer timer{bed.loop(), [&] { settled = true; }};
        timer.start(10ms);
        ASSERT_TRUE(bed.run_until([&] { return settled; }));
    }
    std::uint64_t far_connection() { return bed.sim()->next_connection() - 1; }
};

TEST_P(SessionPause, HandsNothingOverAndHoldsThePeerUp) {
    connect({}, {.receive_count = 8});
    far.session->pause();
    const std::size_t sent = send_until_refused();
    EXPECT_GE(sent, 6U);
    EXPECT_LE(sent, 8U);
    EXPECT_TRUE(far.frames.empty());
    // The other direction continues.
    flood(far, 100);
    ASSERT_TRUE(bed.run_until([&] { return near.frames.size() == 100; }));
    EXPECT_TRUE(far.frames.empty());
    far.session->resume();
    EXPECT_TRUE(far.frames.empty()) << "no callback inside the call";
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == sent && near.room > 0; }));
    flood(near, 200);
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == sent + 200; }));
}

TEST_P(SessionPause, MayBePausedAndResumedInItsHandlers) {
    connect({}, {.receive_count = 8});
    far.at_frame = [&] {
        far.session->pause();
        if (far.frames.size() % 2 == 0) far.session->resume();
    };
    flood(near, 300);
    ASSERT_TRUE(bed.run_until([&] {
        if (far.frames.size() % 2 == 1) far.session->resume();
        return far.frames.size() == 300;
    }));
    expect_flood(far, 300);
}

TEST_P(SessionPause, TheRestOfAFrameComesAgainAfterIt) {
    connect();
    class Halving final : public Session::Handler {
      public:
        void on_open(Session&) override {}
        void on_frame(Session& session, const IncomingFrame& frame) override {
            parts.emplace_back(frame.body.size(), frame.continued);
            kinds.push_back(frame.kind);
            if (frame.body.size() == 1 || (frame.body.empty() && frame.continued)) return;
            session.pause();
            session.put_back(frame.body.subspan(frame.body.size() / 2));
            session.resume();
        }
        void on_sent(Session&, Cookie, Completion::Outcome) override {}
        void on_writable(Session&) override {}
        void on_closed(Session&, const Closed&) override {}
        std::vector<std::pair<std::size_t, bool>> parts;
        std::vector<std::uint8_t> kinds;
    } halving;
    End dialer;
    const auto session = std::make_unique<Session>(
        bed.transport(),
        Session::Target{
            .provider = bed.transport().providers_to(listener->endpoints().front().address).front(),
            .remote = listener->endpoints().front().address,
            .local_host = {}},
        Hello{.service = Service::messages, .service_data = {}}, SessionOptions{}, halving);
    const int opened = far.opened;
    ASSERT_TRUE(bed.run_until([&] { return far.opened > opened; }));
    const std::array<std::byte, 8> body{};
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(far.session->send({.kind = 21, .extension = body}, std::nullopt), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return halving.parts.size() == 8; }));
    const std::vector<std::pair<std::size_t, bool>> one{
        {8, false}, {4, true}, {2, true}, {1, true}};
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(halving.parts[i], one[i % 4]);
        EXPECT_EQ(halving.kinds[i], 21);
    }
    // An empty frame comes again too.
    ASSERT_EQ(far.session->send({.kind = 22}, std::nullopt), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return halving.parts.size() == 10; }));
    EXPECT_EQ(halving.parts[9], std::pair(std::size_t{0}, true));
}

TEST_P(SessionPause, ACloseOfThePeerWaitsForTheUser) {
    connect();
    far.session->pause();
    send(near, 5);
    near.session->close();
    settle();
    EXPECT_TRUE(near.closed.empty());
    EXPECT_EQ(far.shut_down, 0);
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), 5U);
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(SessionPause, MayBeClosedWhilePaused) {
    connect();
    far.session->pause();
    send(near, 5);
    send(far, 3);
    far.session->close();
    settle();
    EXPECT_TRUE(near.closed.empty() && far.closed.empty());
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), 5U);
    expect_end(near, CloseReason::orderly, 0);
    expect_end(far, CloseReason::orderly, 0);
}

TEST_P(SessionPause, WhatHadArrivedBeforeThePeerDiedIsHandedOverBeforeTheEnd) {
    connect();
    far.session->pause();
    send(near, 5);
    settle();
    near.session.reset();
    settle();
    EXPECT_TRUE(far.closed.empty());
    bool all_before = false;
    far.at_closed = [&] { all_before = far.frames.size() == 5; };
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_TRUE(all_before);
    expect_end(far, CloseReason::lost, 0);
}

TEST_P(SessionPause, AnAbortDropsQueuedFramesAlsoAfterThePeersDeath) {
    for (const bool peer_is_dead : {false, true}) {
        near = {};
        far = {};
        connect();
        far.session->pause();
        send(near, 5);
        settle();
        if (peer_is_dead) near.session.reset();
        settle();
        far.session->abort();
        EXPECT_TRUE(far.closed.empty()) << "no callback inside the call";
        ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
        EXPECT_TRUE(far.frames.empty());
        EXPECT_EQ(far.closed[0].reason, peer_is_dead ? CloseReason::lost : CloseReason::local);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionPause, all_beds(), bed_name);

using SimulatedPause = SessionPause;

const SessionOptions quick{.receive_count = 6, .heartbeat = 1000ms, .dead_after = 5000ms};

TEST_P(SimulatedPause, APeerThatHasNoCreditsLeftIsNotSilent) {
    bed.sim()->give_no_signs_of_life();
    connect(quick, quick);
    far.session->pause();
    static_cast<void>(send_until_refused());
    const TimePoint end = bed.loop().now() + 50s;
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= end; }));
    EXPECT_TRUE(near.closed.empty() && far.closed.empty());
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !far.frames.empty() && near.room > 0; }));
}

// Its heartbeats wait behind the frame and keep their receives, so the peer cannot return credits.
TEST_P(SimulatedPause, APeerThatCannotGetCreditsIsNotSilent) {
    bed.sim()->give_no_signs_of_life();
    connect(quick, quick);
    far.session->pause();
    send(near, 1);
    const TimePoint end = bed.loop().now() + 50s;
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= end; }));
    EXPECT_TRUE(near.closed.empty() && far.closed.empty());
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == 1; }));
    flood(near, 20); // more than there are receives
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == 21; }));
    const TimePoint later = bed.loop().now() + 50s;
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= later; }));
    EXPECT_TRUE(near.closed.empty() && far.closed.empty());
}

TEST_P(SimulatedPause, ThePeersSilenceIsNoticedAndWhatHadArrivedIsHandedOver) {
    connect(quick, quick);
    far.session->pause();
    send(near, 2);
    settle();
    bed.sim()->cut(far_connection());
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    const TimePoint end = bed.loop().now() + 10s;
    Timer timer{bed.loop(), [] {}};
    timer.start_at(end);
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= end; }));
    EXPECT_TRUE(far.closed.empty());
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), 2U);
    expect_end(far, CloseReason::silent, 0);
}

TEST_P(SimulatedPause, ACloseDelayedByAPausedPeerIsUnconfirmed) {
    connect({.close_timeout = 2s});
    far.session->pause();
    send(near, 5);
    near.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::unconfirmed, 5);
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), 5U) << "they had arrived";
}

// The queue has as many frames as there are receives, and their handlers are slow.
TEST_P(SimulatedPause, WhatHasWaitedIsHandedOverInMoreThanOneTurn) {
    connect({}, {.receive_count = 8});
    far.session->pause();
    const std::size_t sent = send_until_refused();
    ASSERT_GE(sent, 6U);
    std::vector<std::size_t> frames_of_a_turn;
    far.at_frame = [&] { bed.world()->spend(2ms); };
    far.session->resume();
    while (far.frames.size() < sent) {
        const std::size_t before = far.frames.size();
        bed.loop().run_once();
        frames_of_a_turn.push_back(far.frames.size() - before);
        ASSERT_LT(frames_of_a_turn.size(), 100U);
    }
    EXPECT_LE(std::ranges::max(frames_of_a_turn), 2U) << "one turn before and one after polling";
    EXPECT_EQ(far.frames.size(), sent);
}

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedPause, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::session_pause_test
