// SPDX-License-Identifier: Apache-2.0

// The orderly end: two sides in every interleaving, with a break at every point.

#include "netio/session/send_window.hpp"
#include "netio/session/shutdown.hpp"

#include <gmock/gmock.h>

#include <array>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace netio::test::shutdown_test {
namespace {

using testing::HasSubstr;

constexpr std::uint8_t a_message = first_service_kind;

struct Side {
    Shutdown shutdown;
    bool closed = false;
    int sent = 0;
    int taken = 0; // frames of the peer that the user here took
    int left = 0;  // frames of the peer that the user here did not take
    std::deque<std::pair<std::uint8_t, std::uint32_t>> incoming; // kind, unread

    std::string key() const {
        std::string key;
        for (const int number :
             {int{closed}, sent, taken, left, int{shutdown.may_send()},
              int{shutdown.peer_may_send()}, int{shutdown.awaits_user()}, int{shutdown.is_silent()},
              int{shutdown.peer_is_silent()}, int{shutdown.is_complete()},
              static_cast<int>(shutdown.next().value_or(FrameKind::open)),
              static_cast<int>(shutdown.unread()), static_cast<int>(shutdown.unread_by_peer())})
            key += std::to_string(number) + ' ';
        for (const auto& [kind, unread] : incoming)
            key += std::to_string(kind) + ':' + std::to_string(unread) + ' ';
        return key;
    }
};

using Pair = std::array<Side, 2>;

class Explorer {
  public:
    void run() {
        visit({});
        while (!open_.empty()) {
            const Pair pair = open_.back();
            open_.pop_back();
            check(pair);
            bool stuck = true;
            for (std::size_t i = 0; i < 2; ++i)
                stuck = !step(pair, i) && stuck;
            const bool closing = pair[0].closed || pair[1].closed;
            if (stuck && closing) expect_complete(pair);
        }
    }
    std::size_t states() const noexcept { return seen_.size(); }
    int orderly() const noexcept { return orderly_; }

  private:
    static constexpr int most_messages = 2;

    void visit(const Pair& pair) {
        if (seen_.insert(pair[0].key() + '|' + pair[1].key()).second) open_.push_back(pair);
    }
    // Performs every step that a side can take. Returns false if it can only wait.
    bool step(const Pair& pair, std::size_t i) {
        const Side& side = pair[i];
        bool moved = false;
        const auto with = [&](auto change) {
            Pair next = pair;
            change(next[i], next[1 - i]);
            visit(next);
            moved = true;
        };
        if (!side.closed) {
            with([](Side& here, Side&) {
                here.closed = true;
                EXPECT_TRUE(here.shutdown.close());
            });
            moved = false; // optional
        }
        if (side.shutdown.may_send() && side.sent < most_messages) {
            with([](Side& here, Side& there) {
                ++here.sent;
                there.incoming.emplace_back(a_message, 0);
            });
            moved = false;
        }
        if (const auto kind = side.shutdown.next()) {
            with([&](Side& here, Side& there) {
                const bool is_ack = *kind == FrameKind::shutdown_ack;
                there.incoming.emplace_back(static_cast<std::uint8_t>(*kind),
                                            is_ack ? here.shutdown.unread() : 0);
                here.shutdown.on_sent(*kind);
            });
        }
        if (side.shutdown.awaits_user()) {
            with([](Side& here, Side&) { here.shutdown.confirm(); });
        }
        if (!side.incoming.empty()) {
            with([](Side& here, Side&) { take(here, true); });
            if (side.closed && side.incoming.front().first == a_message) {
                with([](Side& here, Side&) { take(here, false); });
            }
        }
        return moved;
    }
    static void take(Side& here, bool wanted) {
        const auto [kind, unread] = here.incoming.front();
        here.incoming.pop_front();
        EXPECT_FALSE(here.shutdown.peer_is_silent());
        if (kind == a_message) {
            EXPECT_TRUE(here.shutdown.peer_may_send());
            ++(wanted ? here.taken : here.left);
            if (!wanted) here.shutdown.add_unread(1);
        } else if (kind == static_cast<std::uint8_t>(FrameKind::shutdown)) {
            EXPECT_TRUE(here.shutdown.on_shutdown());
        } else {
            EXPECT_TRUE(here.shutdown.on_ack(unread));
        }
    }
    // Checks the result if the connection broke now.
    void check(const Pair& pair) {
        for (std::size_t i = 0; i < 2; ++i) {
            const Side& here = pair[i];
            const Side& there = pair[1 - i];
            const auto sent = static_cast<std::uint64_t>(here.sent);
            for (const CloseReason cause :
                 {CloseReason::lost, CloseReason::silent, CloseReason::unconfirmed,
                  CloseReason::local, CloseReason::protocol_error}) {
                const Closed closed =
                    here.shutdown.judge({.reason = cause, .detail = "why"}, sent, sent);
                if (closed.reason == CloseReason::orderly) {
                    ++orderly_;
                    EXPECT_EQ(there.taken, here.sent);
                    EXPECT_EQ(closed.unconfirmed_frames, 0U);
                    EXPECT_TRUE(here.closed || here.taken == there.sent);
                    EXPECT_NE(cause, CloseReason::local);
                    EXPECT_NE(cause, CloseReason::protocol_error);
                } else {
                    EXPECT_THAT(closed.reason, testing::AnyOf(cause, CloseReason::unconfirmed));
                    EXPECT_GE(closed.unconfirmed_frames,
                              static_cast<std::uint64_t>(here.sent - there.taken));
                }
                if (here.closed && cause == CloseReason::lost) {
                    EXPECT_NE(closed.reason, CloseReason::lost);
                }
            }
        }
    }
    static void expect_complete(const Pair& pair) {
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_TRUE(pair[i].shutdown.is_complete());
            EXPECT_TRUE(pair[i].shutdown.is_silent());
            const Closed closed = pair[i].shutdown.judge(
                {.reason = CloseReason::lost}, static_cast<std::uint64_t>(pair[i].sent), 0);
            EXPECT_EQ(closed.reason,
                      pair[1 - i].left == 0 ? CloseReason::orderly : CloseReason::unconfirmed);
            EXPECT_EQ(closed.unconfirmed_frames, static_cast<std::uint64_t>(pair[1 - i].left));
        }
    }

    std::set<std::string> seen_;
    std::vector<Pair> open_;
    int orderly_ = 0;
};

TEST(Shutdown, OrderlyMeansInEveryInterleavingThatEverythingWasTaken) {
    Explorer explorer;
    explorer.run();
    EXPECT_GT(explorer.states(), 1000U);
    EXPECT_GT(explorer.orderly(), 0);
}

TEST(Shutdown, APeerThatSpeaksOutOfTurnIsNoticed) {
    Shutdown shutdown;
    EXPECT_FALSE(shutdown.on_ack(0)) << "nothing was shut down";
    EXPECT_TRUE(shutdown.on_shutdown());
    EXPECT_FALSE(shutdown.on_shutdown()) << "twice";
    EXPECT_FALSE(shutdown.on_ack(0)) << "the own shutdown frame is not sent yet";
    shutdown.on_sent(FrameKind::shutdown);
    EXPECT_TRUE(shutdown.on_ack(0));
    EXPECT_FALSE(shutdown.on_ack(0)) << "twice";
}

TEST(Shutdown, TheTimeRunsForThePeerAndTheLimitForBoth) {
    const TimePoint limit{std::chrono::seconds{9}};
    Shutdown near;
    EXPECT_FALSE(near.awaits_peer());
    EXPECT_EQ(near.limit(), TimePoint::max());
    near.close(limit);
    EXPECT_TRUE(near.awaits_peer());
    near.on_sent(FrameKind::shutdown);
    EXPECT_TRUE(near.on_ack(0));
    EXPECT_FALSE(near.awaits_peer()) << "the user here delays it";
    EXPECT_TRUE(near.on_shutdown());
    near.confirm();
    near.on_sent(FrameKind::shutdown_ack);
    EXPECT_TRUE(near.awaits_peer());
    EXPECT_EQ(near.limit(), limit);

    Shutdown far;
    EXPECT_TRUE(far.on_shutdown());
    far.on_sent(FrameKind::shutdown);
    EXPECT_FALSE(far.awaits_peer()) << "the side that closed watches the time";
    far.confirm();
    far.on_sent(FrameKind::shutdown_ack);
    EXPECT_TRUE(far.awaits_peer());
    EXPECT_EQ(far.limit(), TimePoint::max());
}

TEST(Shutdown, TheEndReportsWhatIsMissingAndWhy) {
    Shutdown shutdown;
    EXPECT_TRUE(shutdown.close());
    EXPECT_FALSE(shutdown.close());
    const Closed closed = shutdown.judge({.reason = CloseReason::lost, .detail = "reset"}, 9, 1);
    EXPECT_EQ(closed.detail, "reset; 1 frame unconfirmed");
    EXPECT_EQ(shutdown.judge({.reason = CloseReason::local}, 9, 2).detail, "2 frames unconfirmed");
    EXPECT_EQ(shutdown.judge({.reason = CloseReason::local}, 9, 0).detail, "");
    EXPECT_THAT(shutdown.judge({.reason = CloseReason::silent}, 9, 2).detail,
                HasSubstr("peer silent; 2 frames"));
}

TEST(Shutdown, AnOrderlyEndHasNothingToSay) {
    Shutdown shutdown;
    EXPECT_TRUE(shutdown.close());
    shutdown.on_sent(FrameKind::shutdown);
    EXPECT_TRUE(shutdown.on_shutdown());
    shutdown.confirm();
    shutdown.on_sent(FrameKind::shutdown_ack);
    EXPECT_TRUE(shutdown.on_ack(0));
    const Closed closed =
        shutdown.judge({.reason = CloseReason::lost, .detail = "the peer is gone"}, 9, 0);
    EXPECT_EQ(closed.reason, CloseReason::orderly);
    EXPECT_EQ(closed.detail, "") << "the connection had to end in some way";
}

TEST(Shutdown, TheCountOfUnreadFramesDoesNotWrap) {
    Shutdown shutdown;
    shutdown.add_unread(UINT32_MAX - 1);
    shutdown.add_unread(5);
    EXPECT_EQ(shutdown.unread(), UINT32_MAX);
}

TEST(UnackedFramesTest, CountsWhatTheServiceSentAndThePeerHasNotTaken) {
    UnackedFrames unacked;
    unacked.on_own_sent(); // the open frame
    unacked.on_service_sent();
    unacked.on_service_sent();
    unacked.on_own_sent();
    unacked.on_service_sent();
    EXPECT_EQ(unacked.sent(), 3U);
    EXPECT_EQ(unacked.outstanding(), 3U);
    unacked.on_credits(1);
    EXPECT_EQ(unacked.outstanding(), 3U);
    unacked.on_credits(1);
    EXPECT_EQ(unacked.outstanding(), 2U);
    unacked.on_credits(2);
    EXPECT_EQ(unacked.outstanding(), 1U);
    unacked.on_credits(1);
    EXPECT_EQ(unacked.outstanding(), 0U);
    EXPECT_EQ(unacked.sent(), 3U);
}

TEST(UnackedFramesTest, SessionFramesAreAcknowledgedOnlyByTheirCredit) {
    UnackedFrames unacked;
    unacked.on_own_sent();
    unacked.on_service_sent();
    unacked.on_credits(0);
    EXPECT_EQ(unacked.outstanding(), 1U);
    unacked.on_credits(1); // for the session's own frame
    EXPECT_EQ(unacked.outstanding(), 1U);
    unacked.on_credits(1);
    EXPECT_EQ(unacked.outstanding(), 0U);
}

// --- the reason of an abort

TEST(AbortReason, LiesAsDocumented) {
    const auto bytes = encode(AbortReason{.why = AbortReason::too_slow, .value = 0x04030201});
    constexpr std::array<int, abort_reason_bytes> expected{1, 0, 0, 0, 1, 2, 3, 4};
    for (std::size_t i = 0; i < abort_reason_bytes; ++i)
        EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
    EXPECT_EQ(decode_abort_reason(bytes),
              (AbortReason{.why = AbortReason::too_slow, .value = 0x04030201}));
}

TEST(AbortReason, FromALaterVersionIsPartlyUnderstood) {
    std::vector<std::byte> bytes(abort_reason_bytes + 5);
    bytes[0] = std::byte{77};
    bytes[4] = std::byte{9};
    EXPECT_EQ(decode_abort_reason(bytes), (AbortReason{.why = 77, .value = 9}));
}

TEST(AbortReason, MalformedIsRefused) {
    std::vector<std::byte> bytes(abort_reason_bytes);
    EXPECT_FALSE(decode_abort_reason(bytes)) << "no reason";
    bytes[0] = std::byte{1};
    EXPECT_TRUE(decode_abort_reason(bytes));
    bytes[2] = std::byte{1};
    EXPECT_FALSE(decode_abort_reason(bytes)) << "reserved";
    bytes[2] = std::byte{0};
    bytes.pop_back();
    EXPECT_FALSE(decode_abort_reason(bytes)) << "short";
}

TEST(AbortReason, ForAReasonThatIsNotKnownIsALostConnection) {
    const Closed closed = closed_by({.why = 77, .value = 9}, "10.0.0.1:1");
    EXPECT_EQ(closed.reason, CloseReason::lost);
    EXPECT_THAT(closed.detail, HasSubstr("10.0.0.1:1 has ended it"));
    EXPECT_THAT(closed.detail, HasSubstr("(77)"));
}

} // namespace
} // namespace netio::test::shutdown_test
