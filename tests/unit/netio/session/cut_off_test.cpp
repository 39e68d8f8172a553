// SPDX-License-Identifier: Apache-2.0
#include "netio/session/cut_off.hpp"

#include "tests/unit/netio/session/session_fixture.hpp"

namespace netio::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(CutOff, LiesAsDocumented) {
    const auto bytes = encode(CutOff{.why = CutOff::too_slow, .milliseconds = 0x04030201});
    constexpr std::array<int, cut_off_bytes> expected{1, 0, 0, 0, 1, 2, 3, 4};
    for (std::size_t i = 0; i < cut_off_bytes; ++i)
        EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
    EXPECT_EQ(decode_cut_off(bytes), (CutOff{.why = CutOff::too_slow, .milliseconds = 0x04030201}));
}

TEST(CutOff, OfALaterVersionIsUnderstoodAsFarAsItCan) {
    std::vector<std::byte> bytes(cut_off_bytes + 5);
    bytes[0] = std::byte{77};
    bytes[4] = std::byte{9};
    EXPECT_EQ(decode_cut_off(bytes), (CutOff{.why = 77, .milliseconds = 9}));
}

TEST(CutOff, MalformedIsRefused) {
    std::vector<std::byte> bytes(cut_off_bytes);
    EXPECT_FALSE(decode_cut_off(bytes)) << "no reason";
    bytes[0] = std::byte{1};
    EXPECT_TRUE(decode_cut_off(bytes));
    bytes[2] = std::byte{1};
    EXPECT_FALSE(decode_cut_off(bytes)) << "reserved";
    bytes[2] = std::byte{0};
    bytes.pop_back();
    EXPECT_FALSE(decode_cut_off(bytes)) << "short";
}

TEST(CutOff, ForAReasonThatIsNotKnownIsALostConnection) {
    const Closed closed = closed_by({.why = 77, .milliseconds = 9}, "10.0.0.1:1");
    EXPECT_EQ(closed.reason, CloseReason::lost);
    EXPECT_THAT(closed.detail, HasSubstr("10.0.0.1:1 has ended it"));
    EXPECT_THAT(closed.detail, HasSubstr("(77)"));
}

class SessionCutOff : public SessionTest {
  protected:
    std::size_t send_until_refused() {
        std::size_t sent = 0;
        while (near.session->send({.kind = 20}, Cookie{sent}) == Status::ok)
            ++sent;
        return sent;
    }
};

INSTANTIATE_TEST_SUITE_P(Beds, SessionCutOff, all_beds(), bed_name);

// It has no credit left but the one that is kept.
TEST_P(SessionCutOff, TellsThePeerThatItWasTooSlowAndForHowLong) {
    connect({}, {.receive_count = 8});
    far.session->pause();
    const std::size_t sent = send_until_refused();
    ASSERT_TRUE(bed.run_until([&] { return near.sent.size() == sent; }));
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 10s);
    near.session->cut_off(CloseReason::too_slow, "once is enough", 11s);
    EXPECT_EQ(near.session->send({.kind = 20}, Cookie{99}), Status::closed);
    EXPECT_TRUE(near.closed.empty()) << "a call never calls back";
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    expect_end(near, CloseReason::too_slow, sent);
    EXPECT_EQ(near.closed[0].detail, "it took nothing");
    far.session->resume();
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_EQ(far.frames.size(), sent) << "what came before it";
    EXPECT_EQ(far.closed[0].reason, CloseReason::too_slow);
    EXPECT_THAT(far.closed[0].detail, HasSubstr("nothing for 10000 ms"));
}

TEST_P(SessionCutOff, MayBeFollowedByAnAbortOrByTheEndOfTheSession) {
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

TEST_P(SessionCutOff, ByAPeerEndsWhatTheOtherSideWantedToCloseInOrder) {
    connect();
    send(far, 3);
    far.session->close();
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::too_slow);
    EXPECT_NE(far.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(far.closed[0].unconfirmed_frames, 3U);
}

using SessionCutOffAtOnce = SessionCutOff;
INSTANTIATE_TEST_SUITE_P(Beds, SessionCutOffAtOnce, simulated_beds(), bed_name);

// The memory of what is stuck is wanted back.
TEST_P(SessionCutOffAtOnce, WaitsForNothingThatIsStuck) {
    connect();
    bed.sim()->cut(bed.sim()->next_connection() - 1);
    const std::size_t sent = send_until_refused();
    const TimePoint begin = bed.world()->now();
    near.session->cut_off(CloseReason::too_slow, "it took nothing", 1s);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_LE(bed.world()->now() - begin, 250ms);
    EXPECT_EQ(near.sent.size(), sent);
}

// Over a way that was slow and then blocked: a connection keeps its order also behind its end.
TEST_P(SessionCutOffAtOnce, LeavesBehindWhatArrivesInItsOrder) {
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
} // namespace netio::test
