// SPDX-License-Identifier: Apache-2.0

// Sends, receives and arrived bytes when the connection is lost.

#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::loss_test {
namespace {

class Loss : public PairOnBed {
  protected:
    // The server sends this many bytes and its end, all of which reach the client's ring, and then
    // dies.
    void arrive_and_die(std::size_t bytes, const StreamSocket::Options& options = {}) {
        ASSERT_NO_FATAL_FAILURE(establish(options));
        ASSERT_EQ(server.send(bytes), Status::ok);
        server.socket->shutdown_send();
        ASSERT_TRUE(bed.run_until([&] {
            return client.socket->counters().received.indirect_bytes == bytes &&
                   server.socket->counters().controls > 1;
        }));
        for (int i = 0; i < 100; ++i)
            bed.loop().run_once();
        server.socket.reset();
    }
};

TEST_P(Loss, ASendOnlyUserIsNotifiedAndItsMemoryIsReleased) {
    establish();
    ASSERT_EQ(server.send(10), Status::ok);
    server.socket->shutdown_send();
    ASSERT_EQ(client.send(1 << 20), Status::ok);
    ASSERT_EQ(client.send(1 << 20), Status::ok); // together more than the ring holds
    ASSERT_TRUE(bed.run_until([&] { return server.sends_done == 1; }));
    server.socket.reset();
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.closed->reason, CloseReason::lost) << client.closed->detail;
    EXPECT_EQ(client.sends_completed, 2U);
    EXPECT_LT(client.sends_done, 2U);
}

TEST_P(Loss, ArrivedBytesAreDeliveredInSteps) {
    StreamSocket::Options small_steps;
    small_steps.copy_step_bytes = 1'000;
    ASSERT_NO_FATAL_FAILURE(arrive_and_die(50'000, small_steps));
    client.at_received = [&](const Received& got) {
        if (!got.end_of_stream && !client.closed) {
            static_cast<void>(client.receive(7'000, Fill::all));
        }
    };
    ASSERT_EQ(client.receive(7'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.received, 50'000U);
    EXPECT_TRUE(client.ended);
    EXPECT_EQ(client.closed->reason, CloseReason::lost) << client.closed->detail;
}

TEST_P(Loss, AUserWithoutReceivesIsAskedOnce) {
    ASSERT_NO_FATAL_FAILURE(arrive_and_die(50'000));
    client.at_lost = [&](std::uint64_t bytes) {
        EXPECT_EQ(bytes, 50'000U);
        ASSERT_EQ(client.receive(30'000, Fill::all), Status::ok);
        EXPECT_EQ(client.send(1), Status::closed);
    };
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.received, 30'000U) << "the rest is dropped";
    EXPECT_FALSE(client.ended);
    EXPECT_EQ(client.losses, 1U);
}

TEST_P(Loss, EachCanceledReceiveReportsItsBytes) {
    establish();
    ASSERT_EQ(client.receive(1'000, Fill::all), Status::ok);
    ASSERT_EQ(client.receive(1'000, Fill::all), Status::ok);
    ASSERT_EQ(client.receive(1'000, Fill::some), Status::ok);
    ASSERT_EQ(server.send(300), Status::ok);
    ASSERT_TRUE(bed.run_until([&] {
        const auto received = client.socket->counters().received;
        return received.direct_bytes + received.indirect_bytes == 300;
    }));
    for (int i = 0; i < 100; ++i)
        bed.loop().run_once();
    std::vector<std::uint64_t> bytes;
    client.at_received = [&](const Received& got) {
        EXPECT_EQ(got.outcome, Outcome::canceled);
        bytes.push_back(got.bytes);
    };
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_THAT(bytes, testing::ElementsAre(300, 0, 0));
}

TEST_P(Loss, APeersCloseLeavesUnsentBytesUnconfirmed) {
    establish();
    ASSERT_EQ(client.send(1 << 20), Status::ok);
    ASSERT_EQ(client.send(1 << 20), Status::ok);
    server.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
    EXPECT_LT(client.sends_done, 2U);
}

INSTANTIATE_TEST_SUITE_P(Beds, Loss, all_stages(), stage_name);

class SimulatedLoss : public PairOnBed {};

TEST_P(SimulatedLoss, AWriteThatWasCanceledDoesNotCompleteItsSend) {
    const std::uint64_t connection = bed.sim()->next_connection();
    establish();
    bed.sim()->hold(connection);
    for (int i = 0; i < 4; ++i)
        ASSERT_EQ(client.send(40'000), Status::ok);
    ASSERT_TRUE(bed.run_until([&] {
        for (int i = 0; i < 20; ++i)
            bed.loop().run_once();
        return client.socket->counters().sent.indirect_bytes > 0;
    }));
    const std::uint64_t done = client.sends_done;
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.sends_done, done) << "canceling completes no send";
    EXPECT_EQ(client.sends_completed, 4U);
}

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedLoss, simulated_stages(), stage_name);

} // namespace
} // namespace netio::stream::test::loss_test
