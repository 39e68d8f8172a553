// SPDX-License-Identifier: Apache-2.0
#include "netio/session/shutdown.hpp"

#include <gtest/gtest.h>

namespace netio::test::liveness_test {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{};
constexpr TimePoint unknown = TimePoint::min();

Liveness::Look at(Duration time, Duration stalled = 0s) {
    return {.now = start + time, .caught_up = start + time, .stalled = stalled};
}

Liveness heard_at_start(Duration heartbeat, Duration dead_after, Duration peer_heartbeat) {
    Liveness liveness{heartbeat, dead_after};
    liveness.expect(peer_heartbeat);
    liveness.on_received(start, 0s);
    return liveness;
}

TEST(Liveness, LooksOnceAHeartbeatAndAlsoWithoutHeartbeats) {
    EXPECT_EQ((Liveness{5s, 30s}.interval()), Duration{5s});
    EXPECT_EQ((Liveness{5s, 0s}.interval()), Duration{5s});
    EXPECT_EQ((Liveness{0s, 30s}.interval()), Duration{7500ms});
    EXPECT_EQ((Liveness{0s, 0s}.interval()), std::nullopt);
}

TEST(Liveness, BeatsWhenNothingElseWasSent) {
    Liveness liveness{5s, 30s};
    const Liveness::Look look{.now = start, .caught_up = start};
    EXPECT_TRUE(liveness.must_beat(look));
    liveness.on_sent();
    EXPECT_FALSE(liveness.must_beat(look));
    EXPECT_TRUE(liveness.must_beat(look));
    EXPECT_FALSE((Liveness{0s, 30s}.must_beat(look))) << "without a promise";
}

TEST(Liveness, SendsAHeartbeatAfterAStopOfTheProcess) {
    Liveness liveness{5s, 30s};
    const Liveness::Look look{.now = start + 30s, .caught_up = start + 30s, .stalled = 28s};
    liveness.on_sent();
    EXPECT_TRUE(liveness.must_beat(look));
    liveness.on_sent();
    EXPECT_FALSE(liveness.must_beat(look)) << "once per sent frame";
}

// Every verdict: silence of the peer, the sign of life from the provider, the peer's heartbeat
// promise, its credits.
TEST(Liveness, JudgesByTheBestSignThatItHas) {
    for (const Duration silence : {7s, 8s, 30s, 31s, 61s, 100s}) {
        for (const Duration promise : {0s, 5s, 30s}) {
            for (const bool may_speak : {false, true}) {
                const Liveness liveness = heard_at_start(5s, 30s, promise);
                const auto dead = [&](TimePoint sign) {
                    return Liveness{liveness}.is_dead(at(silence), sign, may_speak);
                };
                EXPECT_EQ(liveness.is_suspect(at(silence)), silence > 7s) << "1.5 heartbeats";
                EXPECT_EQ(dead(start), silence > 30s) << "no sign of life from the host";
                EXPECT_FALSE(dead(start + silence)) << "the host is alive";
                EXPECT_EQ(dead(start + silence - 31s), silence >= 31s);
                const Duration limit = promise == 30s ? 60s : 30s;
                EXPECT_EQ(dead(unknown), promise > 0s && may_speak && silence > limit);
            }
        }
    }
}

TEST(Liveness, WithoutALimitNoPeerIsDead) {
    Liveness liveness = heard_at_start(5s, 0s, 5s);
    EXPECT_FALSE(liveness.is_suspect(at(1000h)));
    EXPECT_FALSE(liveness.is_dead(at(1000h), start, true));
    EXPECT_FALSE(liveness.is_dead(at(1000h), unknown, true));
}

TEST(Liveness, SilenceCountsOnlyWhileTheLoopLooked) {
    Liveness liveness = heard_at_start(5s, 30s, 5s);
    EXPECT_FALSE(liveness.is_suspect(at(45s, 44s)));
    EXPECT_FALSE(liveness.is_dead(at(45s, 44s), start, true)) << "this process was stopped";
    EXPECT_FALSE(liveness.is_dead(at(45s, 44s), unknown, true));
    EXPECT_TRUE(liveness.is_dead(at(80s, 44s), start, true)) << "and polled long enough since then";
    Liveness later{5s, 30s};
    later.on_received(start, 44s);
    EXPECT_TRUE(later.is_dead(at(31s, 44s), start, true)) << "the stall was earlier";
}

// The peer's host answered while this loop did not poll, and not afterwards.
TEST(Liveness, StallsBeforeTheLastSignDoNotShortenTheSilence) {
    Liveness liveness = heard_at_start(5s, 30s, 5s);
    EXPECT_FALSE(liveness.is_dead(at(62s, 60s), start + 61s, true));
    EXPECT_FALSE(liveness.is_dead(at(92s, 60s), start + 61s, true))
        << "the loop may not have polled in one of the 31 s";
    EXPECT_TRUE(liveness.is_dead(at(93s, 60s), start + 61s, true));
    Liveness within = heard_at_start(5s, 30s, 5s);
    EXPECT_FALSE(within.is_dead(at(60s, 60s), start + 40s, true)) << "no poll in these 20 s";
    EXPECT_FALSE(within.is_dead(at(90s, 60s), start + 40s, true));
    EXPECT_TRUE(within.is_dead(at(91s, 60s), start + 40s, true));
    Liveness twice = heard_at_start(5s, 30s, 5s);
    EXPECT_FALSE(twice.is_dead(at(62s, 60s), start + 62s, true));
    EXPECT_FALSE(twice.is_dead(at(112s, 80s), start + 62s, true)) << "no poll in 20 of the 50 s";
    EXPECT_TRUE(twice.is_dead(at(113s, 80s), start + 62s, true));
    twice.on_received(start + 114s, 80s);
    EXPECT_FALSE(twice.is_dead(at(144s, 80s), start + 62s, true)) << "a frame is a sign as well";
    EXPECT_TRUE(twice.is_dead(at(145s, 80s), start + 62s, true));
}

TEST(Liveness, AnArrivedButUnprocessedFrameMayBeTheSign) {
    Liveness liveness = heard_at_start(5s, 30s, 5s);
    const Liveness::Look behind{.now = start + 40s, .caught_up = start + 20s};
    EXPECT_FALSE(liveness.is_dead(behind, start, true));
    const Liveness::Look for_long{.now = start + 60s, .caught_up = start + 20s};
    EXPECT_TRUE(liveness.is_dead(for_long, start, true)) << "the loop never catches up";
}

TEST(Liveness, ASilenceOfExactlyItsTimeIsNotDoubtfulYet) {
    const Liveness by_beats = heard_at_start(5s, 30s, 5s);
    EXPECT_FALSE(by_beats.is_suspect(at(7500ms)));
    EXPECT_TRUE(by_beats.is_suspect(at(7500ms + 1ns)));
    const Liveness by_limit = heard_at_start(5s, 12s, 5s);
    EXPECT_FALSE(by_limit.is_suspect(at(6s))) << "half of the time after which it is dead";
    EXPECT_TRUE(by_limit.is_suspect(at(6s + 1ns)));
}

TEST(Liveness, AnOlderSignDoesNotReplaceANewerOne) {
    Liveness liveness = heard_at_start(5s, 30s, 5s);
    EXPECT_FALSE(liveness.is_dead(at(20s), start + 19s, true));
    EXPECT_FALSE(liveness.is_dead(at(45s), start + 10s, true)) << "26 s since the last sign";
    EXPECT_TRUE(liveness.is_dead(at(50s), start + 10s, true));
}

TEST(Liveness, ALoopThatLagsByTheWholeLimitStillJudges) {
    Liveness liveness = heard_at_start(5s, 30s, 5s);
    const Liveness::Look almost{.now = start + 50s, .caught_up = start + 20s + 1ns};
    EXPECT_FALSE(liveness.is_dead(almost, start, true));
    const Liveness::Look by_all{.now = start + 50s, .caught_up = start + 20s};
    EXPECT_TRUE(liveness.is_dead(by_all, start, true));
}

} // namespace
} // namespace netio::test::liveness_test
