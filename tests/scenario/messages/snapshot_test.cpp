// SPDX-License-Identifier: Apache-2.0

// Snapshots of a running send socket.

#include "tests/scenario/messages/buffered_fixture.hpp"

#include <chrono>

namespace netio::test::snapshot_test {
namespace {

using namespace std::chrono_literals;

using SendSnapshots = BufferedMessages;

TEST_P(SendSnapshots, BeginWithNothing) {
    socket = std::make_unique<BufferedSendSocket>(bed.transport(), patient, sender);
    const SendSnapshot snapshot = socket->snapshot();
    EXPECT_FALSE(snapshot.connected);
    EXPECT_EQ(snapshot.messages + snapshot.frames + snapshot.again, 0U);
    EXPECT_EQ(snapshot.waiting + snapshot.credits + snapshot.unconfirmed, 0U);
    EXPECT_EQ(snapshot.connections + snapshot.latency.count(), 0U);
}

TEST_P(SendSnapshots, ShowMessagesQueuedForAPausedReceiverAndItsProgress) {
    listen({.session = {.receive_buffer_bytes = 1100, .receive_count = 4}});
    receiver.at_connected = [](ReceiveSocket& peer) { peer.pause(); };
    connect({.page_size_bytes = 1024, .page_count = 32, .flush_time = 0us});
    ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
    const Bytes message = content(900, 1);
    std::uint64_t accepted = 0;
    ASSERT_TRUE(bed.run_until([&] {
        while (send(message) == Status::ok)
            ++accepted;
        const SendSnapshot now = socket->snapshot();
        return now.again > 0 && now.waiting > 0 && now.credits <= 1;
    }));
    const SendSnapshot full = socket->snapshot();
    EXPECT_TRUE(full.connected);
    EXPECT_EQ(full.messages, accepted);
    EXPECT_EQ(full.bytes, accepted * message.size());
    EXPECT_EQ(full.again, socket->counters().again);
    EXPECT_GT(full.unconfirmed, 0U);
    EXPECT_LE(full.waiting + full.unconfirmed, full.frames);
    EXPECT_EQ(full.connections, 1U);
    const TimePoint waiting_since = bed.loop().now();
    bool over = false;
    Timer pause{bed.loop(), [&] { over = true; }};
    pause.start(20ms);
    ASSERT_TRUE(bed.run_until([&] { return over; }));
    const Duration waited = bed.loop().now() - waiting_since;

    // Confirmed messages are not counted any more, and nothing is queued.
    for (ReceiveSocket* const peer : listener->peers())
        peer->resume();
    socket->flush();
    ASSERT_TRUE(arrived(accepted));
    ASSERT_TRUE(bed.run_until([&] {
        const SendSnapshot now = socket->snapshot();
        return now.waiting == 0 && now.credits > 1 && now.unconfirmed < full.unconfirmed;
    }));
    EXPECT_EQ(socket->snapshot().frames, accepted); // one message each
    ASSERT_TRUE(bed.run_until([&] { return socket->snapshot().latency.count() == accepted; }));
    EXPECT_GE(socket->snapshot().latency.longest(), waited);
    EXPECT_GE(waited, 20ms);
}

TEST_P(SendSnapshots, KeepTheSumsAfterAConnectionHasEnded) {
    listen();
    connect(patient);
    ASSERT_EQ(send(content(100, 1)), Status::ok);
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    const SendSnapshot snapshot = socket->snapshot();
    EXPECT_FALSE(snapshot.connected);
    EXPECT_EQ(snapshot.messages, 1U);
    EXPECT_EQ(snapshot.frames, 1U);
    EXPECT_EQ(snapshot.credits + snapshot.unconfirmed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, SendSnapshots, all_beds(), bed_name);

} // namespace
} // namespace netio::test::snapshot_test
