// SPDX-License-Identifier: Apache-2.0

// A ring that grows while the stream is in use, and one that cannot.

#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::ring_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t first_bytes = 4'000;
constexpr std::uint64_t limit_bytes = 50'000; // 4, 8, 16, 32, 50: five rings

class RingGrowth : public PairOnBed {
  protected:
    static StreamSocket::Options sending() {
        StreamSocket::Options options;
        options.sender.mode = TransferMode::indirect_only;
        return options;
    }
    // So far away that the ring is the limit whenever a sender waits for it.
    static StreamSocket::Options receiving(std::uint64_t limit = limit_bytes) {
        StreamSocket::Options options{.receiver = improved_receiver(first_bytes, limit)};
        options.round_trip = std::chrono::hours{1};
        return options;
    }
    void keep_sending() {
        while (client.sends - client.sends_completed < 4)
            ASSERT_EQ(client.send(30'000), Status::ok);
    }
    void keep_receiving() {
        while (server.receives - server.receives_completed < 4)
            ASSERT_EQ(server.receive(20'000, Fill::some), Status::ok);
    }
    bool run_while_flowing(const std::function<bool()>& done) {
        return bed.run_until([&] {
            keep_sending();
            keep_receiving();
            return done() || client.closed || server.closed;
        });
    }
    bool run_until_received(std::uint64_t bytes) {
        return run_while_flowing([&] { return server.received >= bytes; });
    }
    SenderCounters sent() const { return client.socket->counters().sent; }
    ReceiverCounters received() const { return server.socket->counters().received; }
};

class SimulatedRingGrowth : public RingGrowth {};
class RegisteredRingGrowth : public RingGrowth {};

TEST_P(RingGrowth, GoesUpToTheLimitWhileTheStreamContinues) {
    for (const bool without_immediate_data : {false, true}) {
        client.forget();
        server.forget();
        StreamSocket::Options options = sending();
        options.session.never_immediate = without_immediate_data;
        establish(options, receiving());

        ASSERT_TRUE(run_while_flowing([&] { return sent().ring_bytes == limit_bytes; }));
        ASSERT_TRUE(run_until_received(server.received + 4 * limit_bytes));

        EXPECT_EQ(received().ring_bytes, limit_bytes);
        EXPECT_EQ(received().ring_growths, 4U);
        EXPECT_EQ(sent().ring_growths, 4U);
        EXPECT_EQ(sent().direct_bytes, 0U);
        client.socket->abort();
        ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    }
}

TEST_P(RingGrowth, StopsWhereTheLimitIsTheRingItself) {
    establish(sending(), receiving(first_bytes));
    ASSERT_TRUE(run_until_received(400'000));
    EXPECT_GT(sent().waits_for_ring, 10U);
    EXPECT_EQ(sent().ring_bytes, first_bytes);
    EXPECT_EQ(received().ring_growths, 0U);
}

TEST_P(RingGrowth, IsNotCausedByASlowUser) {
    establish(sending(), receiving());
    for (int i = 0; i < 50; ++i) {
        keep_sending();
        ASSERT_TRUE(bed.run_until([&] {
            return sent().indirect_bytes == server.received + first_bytes &&
                   received().indirect_bytes == sent().indirect_bytes;
        })) << "the ring is full, and there is no receive";
        ASSERT_EQ(server.receive(1'500, Fill::all), Status::ok);
        ASSERT_TRUE(bed.run_until([&] { return server.receives_completed == server.receives; }));
    }
    EXPECT_GT(sent().waits_for_ring, 40U);
    EXPECT_EQ(received().ring_growths, 0U);
}

TEST_P(RingGrowth, IsNotCausedByAShortPath) {
    StreamSocket::Options near = receiving();
    near.round_trip = std::chrono::nanoseconds{1};
    establish(sending(), near);
    ASSERT_TRUE(run_until_received(400'000));
    EXPECT_GT(sent().waits_for_ring, 10U);
    EXPECT_EQ(received().ring_growths, 0U);
}

TEST_P(SimulatedRingGrowth, ReleasesTheMemoryOfEveryOldRing) {
    establish(sending(), receiving());
    ASSERT_TRUE(run_until_received(1)); // everything else is registered by now
    const std::size_t before = bed.sim()->registration_count();
    ASSERT_EQ(received().ring_growths, 0U);

    ASSERT_TRUE(run_while_flowing([&] { return sent().ring_bytes == limit_bytes; }));
    ASSERT_TRUE(run_until_received(server.received + 4 * limit_bytes));

    EXPECT_EQ(received().ring_growths, 4U);
    EXPECT_EQ(bed.sim()->registration_count(), before);
}

TEST_P(RegisteredRingGrowth, FailsWithoutMemoryAndTheStreamContinues) {
    establish(sending(), receiving());
    ASSERT_TRUE(run_until_received(1));
    ASSERT_EQ(received().ring_growths, 0U);
    bed.sim()->refuse_registrations(true);

    ASSERT_TRUE(run_until_received(400'000));

    EXPECT_FALSE(server.closed);
    EXPECT_EQ(received().ring_refusals, 1U);
    EXPECT_EQ(received().ring_growths, 0U);
    EXPECT_EQ(sent().ring_bytes, first_bytes);
}

TEST_P(SimulatedRingGrowth, MeasuresTheDistanceInTheHandshake) {
    bed.sim()->delay(bed.sim()->next_connection(), std::chrono::milliseconds{5});
    StreamSocket::Options options = receiving();
    options.round_trip = {};
    establish(sending(), options);
    ASSERT_TRUE(run_while_flowing([&] { return sent().ring_bytes == limit_bytes; }));
}

// The shortest measurement counts: here that of the rings, because the session's handshake was
// slow.
TEST_P(SimulatedRingGrowth, IsNotCausedByASlowHandshake) {
    const std::uint64_t connecting = bed.sim()->next_connection();
    bed.sim()->delay(connecting, 100ms);
    StreamSocket::Options options = receiving();
    options.round_trip = {};
    listen(options);
    connect(sending());
    netio::Timer timer{bed.loop(), [&] { bed.sim()->delay(connecting, 0ms); }};
    timer.start(50ms);
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    bed.sim()->delay(connecting + 1, 1ms); // so that ring messages take time
    ASSERT_TRUE(run_until_received(400'000));
    EXPECT_GT(sent().waits_for_ring, 10U);
    EXPECT_EQ(received().ring_growths, 0U);
}

TEST_P(RingGrowth, LeavesAPublishedStreamAlone) {
    StreamSocket::Options options = published_stream(first_bytes);
    options.sender.mode = TransferMode::indirect_only;
    establish(options, receiving());
    ASSERT_TRUE(run_until_received(400'000));
    EXPECT_GT(sent().waits_for_ring, 10U);
    EXPECT_EQ(received().ring_growths, 0U) << "it does not report that it waits";
}

INSTANTIATE_TEST_SUITE_P(Beds, RingGrowth, all_stages(), stage_name);
INSTANTIATE_TEST_SUITE_P(Beds, SimulatedRingGrowth, simulated_stages(), stage_name);
INSTANTIATE_TEST_SUITE_P(Beds, RegisteredRingGrowth,
                         testing::Combine(netio::test::simulated_beds(),
                                          testing::Values(RemoteWrites::trusted)),
                         stage_name);

} // namespace
} // namespace netio::stream::test::ring_test
