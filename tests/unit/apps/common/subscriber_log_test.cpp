// SPDX-License-Identifier: Apache-2.0
#include "apps/common/logging.hpp"

#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace apps::subscriber_log_test {
namespace {

using netio::pubsub::Fid;
using netio::pubsub::SubscriberId;
using netio::pubsub::SubscriberPeer;
using testing::ElementsAre;

class SubscriberLogTest : public testing::Test {
  protected:
    void ask(std::uint64_t peer, std::uint64_t fids) {
        for (std::uint64_t i = 0; i < fids; ++i)
            log.subscribed(peer_of(peer), {.first = Fid{2 * i}, .last = Fid{2 * i}});
    }
    static SubscriberPeer peer_of(std::uint64_t peer) {
        return {.id = SubscriberId{peer}, .address = "peer" + std::to_string(peer)};
    }
    void turn() { loop.run_once(loop.now()); }

    netio::test::SimWorld world;
    netio::EventLoop loop{netio::EventLoop::Options{}, world};
    std::vector<std::string> lines;
    const LimitedLog::Write write = [this](const std::string& line) { lines.push_back(line); };
    SubscriberLog log{loop, write, write};
};

TEST_F(SubscriberLogTest, SubscriptionsOfOneTurnAreOneLine) {
    ask(1, 300);
    ask(2, 2);
    turn();
    EXPECT_THAT(lines, ElementsAre("peer1 subscribes to 0x0, 0x2, 0x4, 0x6 and 296 more ranges",
                                   "peer2 subscribes to 0x0, 0x2"));
}

TEST_F(SubscriberLogTest, IsLoggedBeforeTheEndOfItsSubscriber) {
    ask(1, 1);
    log.closed(peer_of(1), {.reason = netio::CloseReason::too_slow,
                            .detail = "took nothing",
                            .required_receive_bytes = 0});
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "peer1 subscribes to 0x0");
    EXPECT_THAT(lines[1], testing::HasSubstr("took nothing"));
}

TEST_F(SubscriberLogTest, ItKnowsHowManyHaveSubscribedAndAreStillHere) {
    ask(1, 300);
    ask(2, 1);
    EXPECT_EQ(log.subscriber_count(), 2U);
    log.closed(peer_of(1), {});
    log.closed(peer_of(3), {}); // without any subscription
    EXPECT_EQ(log.subscriber_count(), 1U);
}

TEST_F(SubscriberLogTest, AtTheEndOnlyOrderlyClosesAreConfirmed) {
    using netio::CloseReason;
    for (std::uint64_t peer = 1; peer <= 7; ++peer)
        ask(peer, 1);
    log.closed(peer_of(1), {.reason = CloseReason::too_slow}); // by policy
    log.closed(peer_of(2), {.reason = CloseReason::lost});
    log.begin_end();
    log.closed(peer_of(3), {.reason = CloseReason::orderly});
    log.closed(peer_of(4), {.reason = CloseReason::too_slow});
    log.closed(peer_of(5), {.reason = CloseReason::lost});
    log.closed(peer_of(6), {.reason = CloseReason::unconfirmed});
    log.closed(peer_of(8), {.reason = CloseReason::lost}); // without any subscription
    EXPECT_EQ(log.unconfirmed(), 4U) << "and one is still connected";
    log.closed(peer_of(7), {.reason = CloseReason::orderly});
    EXPECT_EQ(log.unconfirmed(), 3U);
}

// One fid per turn, as in an attempt to fill the log; and many subscribers, one after the other.
TEST_F(SubscriberLogTest, TheNumberOfLinesIsLimitedInAnyNumberOfTurns) {
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        const std::uint64_t peer = i % 2 == 0 ? 1 : i + 1;
        log.subscribed(peer_of(peer), {.first = Fid{2 * i}, .last = Fid{2 * i}});
        turn();
        if (peer != 1) log.closed(peer_of(peer), {.reason = netio::CloseReason::lost});
    }
    EXPECT_EQ(log.subscriber_count(), 1U);
    EXPECT_EQ(log.disconnected(), 5000U);
    EXPECT_LE(lines.size(), 2 * LimitedLog::lines_per_interval) << "connects plus disconnects";
    EXPECT_GE(lines.size(), LimitedLog::lines_per_interval);
}

} // namespace
} // namespace apps::subscriber_log_test
