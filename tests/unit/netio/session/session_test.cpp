// SPDX-License-Identifier: Apache-2.0

// Sessions: credits, heartbeats, and every end except the orderly one.

#include "tests/unit/netio/session/session_fixture.hpp"

#include <algorithm>
#include <array>

namespace netio::test::session_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_P(SessionTest, BothSidesFloodingEachOtherWithTheFewestCreditsDoNotStop) {
    for (const std::size_t receives : {4U, 5U, 8U, 64U}) {
        near = {};
        far = {};
        connect({.receive_count = receives, .send_count = 3},
                {.receive_count = 4, .send_count = 2});
        flood(near, 500);
        flood(far, 500);
        ASSERT_TRUE(
            bed.run_until([&] { return near.frames.size() == 500 && far.frames.size() == 500; }));
        expect_flood(near, 500);
        expect_flood(far, 500);
        ASSERT_TRUE(
            bed.run_until([&] { return near.sent.size() == 500 && far.sent.size() == 500; }));
        for (const auto& [cookie, times] : near.sent)
            EXPECT_EQ(times, 1) << cookie;
    }
}

TEST_P(SessionTest, RefusesWhatCanNeverBeSent) {
    connect({}, {.receive_buffer_bytes = 1000});
    RegisteredBuffer memory{2000};
    EXPECT_EQ(near.session->body_limit(), 992U);
    const Slice fits = memory.slice(0, 992);
    const Slice too_large = memory.slice(0, 993);
    EXPECT_EQ(near.session->send({.kind = 20, .slices = {&too_large, 1}}, Cookie{1}),
              Status::too_large);
    EXPECT_EQ(near.session->send({.kind = 20, .slices = {&fits, 1}}, Cookie{1}), Status::ok);
    const std::vector<Slice> many(29, memory.slice(0, 1));
    EXPECT_EQ(near.session->send({.kind = 20, .slices = many}, Cookie{2}),
              Status::too_many_segments);
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == 1; }));
    EXPECT_EQ(far.frames[0].size(), 992U);
}

TEST_P(SessionTest, MoreSlicesThanTheProviderTakesAreGathered) {
    connect();
    RegisteredBuffer memory{28 * 200};
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory.data()[i] = static_cast<std::byte>(i % 251);
    for (std::size_t count = 0; count <= 28; ++count) {
        std::vector<Slice> slices;
        for (std::size_t i = 0; i < count; ++i)
            slices.push_back(memory.slice(i * 200, 200));
        ASSERT_TRUE(bed.run_until([&] {
            return near.session->send({.kind = 20, .slices = slices}, Cookie{count}) == Status::ok;
        }));
        ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == count + 1; }));
        EXPECT_TRUE(std::ranges::equal(far.frames.back(), memory.memory().first(count * 200)));
    }
}

TEST_P(SessionTest, AsManyGatheredFramesAreOnTheirWayAsOthers) {
    connect();
    const std::size_t all = accept_options.receive_count;
    RegisteredBuffer memory{all * 28 * 20};
    std::vector<std::vector<std::byte>> sent;
    for (std::size_t frame = 0;; ++frame) {
        ASSERT_LE(frame, all);
        std::vector<Slice> slices;
        for (std::size_t i = 0; i < 28; ++i)
            slices.push_back(memory.slice((frame % all * 28 + i) * 20, 20));
        std::ranges::fill(memory.memory().subspan(frame % all * 28 * 20, 28 * 20),
                          static_cast<std::byte>(frame + 1));
        if (near.session->send({.kind = 20, .slices = slices}, Cookie{frame}) != Status::ok) break;
        sent.emplace_back(28 * 20, static_cast<std::byte>(frame + 1));
    }
    EXPECT_GE(sent.size(), all - 2) << "one buffer is for credits, one was for the open frame";
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == sent.size(); }));
    EXPECT_EQ(far.frames, sent);
}

TEST_P(SessionTest, MayBeDestroyedInEachOfItsHandlers) {
    using Hook = std::function<void()> End::*;
    for (const Hook hook :
         {&End::at_open, &End::at_frame, &End::at_sent, &End::at_room, &End::at_closed}) {
        for (End* const victim : {&near, &far}) {
            near = {};
            far = {};
            listener.reset();
            bool destroyed = false;
            accept_options = {.receive_count = 4, .send_count = 4};
            listener = std::make_unique<SessionListener>(
                bed.transport(),
                SessionListener::Options{.service = Service::messages,
                                         .listen = {bed.address()},
                                         .allow_remote_anonymous = true},
                static_cast<SessionListener::Handler&>(*this));
            const auto pump = [](End& end) {
                for (std::uint64_t i = 0; end.session && end.session->is_open() && i < 50; ++i)
                    if (end.session->send({.kind = 20}, Cookie{i}) != Status::ok) break;
            };
            near.at_open = [&] { pump(near); };
            far.at_open = [&] { pump(far); };
            victim->*hook = [&, victim] {
                victim->session.reset();
                destroyed = true;
            };
            dial({.receive_count = 4, .send_count = 4});
            ASSERT_TRUE(bed.run_until(
                [&] { return destroyed || (near.frames.size() >= 2 && far.frames.size() >= 2); }));
            if (!destroyed) {
                pump(*victim);
                ASSERT_TRUE(bed.run_until(
                    [&] { return destroyed || victim->room > 0 || hook == &End::at_closed; }));
            }
            if (!destroyed) {
                End& other = victim == &near ? far : near;
                if (other.session) other.session->abort();
                ASSERT_TRUE(bed.run_until([&] { return destroyed || !victim->closed.empty(); }));
            }
            End& other = victim == &near ? far : near;
            ASSERT_TRUE(bed.run_until(
                [&] { return !other.session || other.opened == 0 || !other.closed.empty(); }));
            near.session.reset();
            far.session.reset();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionTest, all_beds(), bed_name);

// --- in virtual time ------------------------------------------------------------------------

using SimulatedSession = SessionTest;

const SessionOptions quick{.heartbeat = 1000ms, .dead_after = 5000ms};

TEST_P(SimulatedSession, HeartbeatsKeepAnIdleLinkAlive) {
    connect(quick, quick);
    const TimePoint end = bed.loop().now() + 50s;
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= end; }));
    EXPECT_TRUE(near.closed.empty());
    EXPECT_TRUE(far.closed.empty());
    EXPECT_EQ(near.frames.size(), 0U) << "the user does not receive heartbeats";
}

TEST_P(SimulatedSession, SilenceIsNoticedOnBothSides) {
    connect(quick, quick);
    const TimePoint begin = bed.loop().now();
    bed.sim()->cut(1);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::silent);
    EXPECT_EQ(far.closed[0].reason, CloseReason::silent);
    EXPECT_GE(bed.loop().now() - begin, 5s);
    EXPECT_LE(bed.loop().now() - begin, 8s);
}

TEST_P(SimulatedSession, WithoutHeartbeatsNoPeerIsDead) {
    connect({.heartbeat = 0ms, .dead_after = 0ms}, {.heartbeat = 0ms, .dead_after = 0ms});
    bed.sim()->cut(1);
    const TimePoint end = bed.loop().now() + 50s;
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= end; }));
    EXPECT_TRUE(near.closed.empty());
}

TEST_P(SimulatedSession, DeadAfterWorksWithoutHeartbeatsOfOurOwn) {
    connect({.heartbeat = 0ms, .dead_after = 5000ms}, quick);
    bed.sim()->cut(1);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::silent, 0);
}

TEST_P(SimulatedSession, TimeInWhichOurLoopDidNotLookIsNotThePeersSilence) {
    connect(quick, quick);
    std::vector<std::byte> body(8);
    near.at_frame = [&] {
        if (near.frames.size() == 1) bed.world()->spend(30s); // stopped, or busy
    };
    send(far, 2);
    const TimePoint end = bed.loop().now() + 50s;
    ASSERT_TRUE(bed.run_until([&] { return bed.loop().now() >= end || !near.closed.empty(); }));
    EXPECT_TRUE(near.closed.empty() && far.closed.empty());
    EXPECT_EQ(near.frames.size(), 2U);
}

TEST_P(SimulatedSession, WritesSoonerOrLaterHoweverFewSlotsItHas) {
    connect({.send_count = 2, .remote_writes = true, .never_immediate = true},
            {.remote_writes = true});
    ASSERT_TRUE(bed.run_until([&] { return near.session->request_write_capacity(); }));
}

TEST_P(SimulatedSession, WithoutItsOpenFrameIsNeverReportedOpen) {
    listener =
        std::make_unique<SessionListener>(bed.transport(),
                                          SessionListener::Options{.service = Service::messages,
                                                                   .listen = {bed.address()},
                                                                   .allow_remote_anonymous = true},
                                          static_cast<SessionListener::Handler&>(*this));
    dial({});
    bool was_open = false;
    near.at_open = [&] { was_open = true; };
    // The accepting side registers memory when it accepts; refuse only after that.
    ASSERT_TRUE(bed.run_until([&] { return far.session != nullptr; }));
    bed.sim()->refuse_registrations(true);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::failed, 0);
    EXPECT_FALSE(was_open);
    EXPECT_FALSE(near.session->is_open());
    bed.sim()->refuse_registrations(false);
}

TEST_P(SimulatedSession, CountsWhatItCarries) {
    connect();
    flood(near, 10);
    ASSERT_TRUE(bed.run_until([&] { return far.frames.size() == 10; }));
    const SessionCounters sent = near.session->counters();
    const SessionCounters received = far.session->counters();
    EXPECT_EQ(sent.frames_sent, 10U);
    EXPECT_EQ(sent.bytes_sent, 80U);
    EXPECT_EQ(received.frames_received, 10U);
    EXPECT_EQ(received.bytes_received, 80U);
    EXPECT_EQ(sent.frames_received + received.frames_sent, 0U);
}

TEST_P(SimulatedSession, AnUnansweredConnectEndsAfterItsTime) {
    connect();
    bed.sim()->ignore_connects(true);
    End other;
    const auto [provider, address] = listener->endpoints().front();
    other.session = std::make_unique<Session>(
        bed.transport(), Session::Target{.provider = provider, .remote = address, .local_host = {}},
        Hello{.service = Service::messages, .service_data = {}},
        SessionOptions{.connect_timeout = 300ms}, other);
    ASSERT_TRUE(bed.run_until([&] { return !other.closed.empty(); }));
    EXPECT_EQ(other.closed[0].reason, CloseReason::connect_timeout);
    EXPECT_THAT(other.closed[0].detail, HasSubstr(to_string(address)));
}

TEST_P(SimulatedSession, ABreakAtAnySendCompletesAllOnceAndReportsOneEnd) {
    for (std::size_t nth = 1; nth < 30; ++nth) {
        near = {};
        far = {};
        connect({.receive_count = 6, .send_count = 5}, {.receive_count = 6, .send_count = 5});
        bed.sim()->break_at_send(bed.sim()->next_connection() - 2, nth);
        std::uint64_t accepted = 0;
        near.at_room = [&] {
            while (accepted < 100 &&
                   near.session->send({.kind = 20}, Cookie{accepted}) == Status::ok)
                ++accepted;
        };
        near.at_room();
        ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
        EXPECT_EQ(near.closed.size(), 1U);
        EXPECT_EQ(near.closed[0].reason, CloseReason::lost);
        EXPECT_EQ(near.sent.size(), accepted) << "broken at send " << nth;
        for (const auto& [cookie, times] : near.sent)
            EXPECT_EQ(times, 1) << cookie;
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedSession, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::session_test
