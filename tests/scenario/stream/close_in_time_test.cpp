// SPDX-License-Identifier: Apache-2.0

// How long a close() takes: while the peer receives nothing, a little at a time, or too little in
// all, and while this process did not run.

#include "netio/loop/event_loop.hpp"
#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::close_in_time_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ClosingInTime : public PairOnBed {
  protected:
    static constexpr std::uint64_t piece = 100'000;

    static StreamSocket::Options with(std::chrono::milliseconds close_timeout,
                                      std::chrono::milliseconds close_limit = 60s) {
        StreamSocket::Options options;
        options.session.close_timeout = close_timeout;
        options.session.close_limit = close_limit;
        return options;
    }
    // Sends more than the peer's ring holds. All sends may use the same memory: the bytes are not
    // checked.
    void send_much(std::size_t count = 20) {
        server.at_raw = [this](const Received& got) {
            ++server.receives_completed;
            server.received += got.bytes;
        };
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(client.socket->send(client.outgoing.slice(0, piece), Cookie{client.sends++}),
                      Status::ok);
        }
        client.sent = count * piece;
    }
    void fill_the_ring() {
        send_much();
        ASSERT_TRUE(
            bed.run_until([&] { return client.socket->counters().sent.waits_for_ring > 0; }));
    }
    // Receives this many bytes each time.
    void read_slowly(std::size_t bytes, Duration pause) {
        slow.emplace(bed.loop(), [this, bytes, pause] {
            if (!server.socket || server.closed || server.ended) return;
            static_cast<void>(server.receive(bytes, Fill::all));
            slow->start(pause);
        });
        slow->start(pause);
    }
    // Waits for the client's on_closed.
    Duration time_of_close() {
        const TimePoint begin = bed.world()->now();
        client.socket->close();
        EXPECT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
        return bed.world()->now() - begin;
    }

    std::optional<Timer> slow;
};

TEST_P(ClosingInTime, ABlockedCloseIsUnconfirmedWithinItsTime) {
    establish(with(2s));
    fill_the_ring();
    server.at_lost = [&](std::uint64_t bytes) {
        EXPECT_EQ(server.receive(std::min<std::size_t>(bytes, piece), Fill::all), Status::ok);
    };
    const Duration time = time_of_close();
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
    EXPECT_THAT(client.closed->detail, HasSubstr("received nothing more for 2000 ms"));
    EXPECT_GE(time, 2s);
    EXPECT_LE(time, 3s);
    EXPECT_LT(client.sends_done, client.sends) << "and what had not left was canceled";
    // The peer, which is alive, receives the reason, and its user can still receive arrived bytes.
    ASSERT_TRUE(bed.run_until([&] { return server.closed.has_value(); }));
    EXPECT_EQ(server.closed->reason, CloseReason::too_slow) << server.closed->detail;
    EXPECT_EQ(server.received, piece);
}

TEST_P(ClosingInTime, ToAStoppedPeerItIsUnconfirmedWithinItsTime) {
    listen();
    const std::uint64_t accepting = bed.sim()->next_connection() + 1;
    connect(with(2s));
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    bed.sim()->hold(accepting);
    send_much();
    const Duration time = time_of_close();
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
    EXPECT_GE(time, 2s);
    EXPECT_LE(time, 3s);
    EXPECT_LT(client.sends_done, client.sends);
}

// Also for bytes that are already in its ring, when this takes longer than close_timeout.
TEST_P(ClosingInTime, WaitsForASlowReaderThatMakesProgress) {
    establish(with(2s));
    fill_the_ring();
    read_slowly(50'000, 250ms); // 1 MiB in more than 5 s
    const Duration time = time_of_close();
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_GE(time, 9s);
    EXPECT_EQ(server.received, client.sent);
    EXPECT_EQ(client.sends_done, client.sends);
}

// There is no ring and no acknowledgement: only leaving bytes show the progress.
TEST_P(ClosingInTime, WaitsForASlowReaderWithoutARingAsWell) {
    StreamSocket::Options options = with(2s);
    options.sender.mode = TransferMode::direct_only;
    establish(options);
    send_much();
    read_slowly(piece, 1s);
    const Duration time = time_of_close();
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_GE(time, 19s);
    EXPECT_EQ(server.received, client.sent);
}

TEST_P(ClosingInTime, AfterTwoShutdownsWaitsForTheSlowReaderAsWell) {
    establish(with(2s));
    send_much(10); // all of it is in the ring
    client.socket->shutdown_send();
    server.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.ended && client.sends_done == 10; }));
    read_slowly(50'000, 250ms);
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
    EXPECT_EQ(server.received, client.sent);
}

TEST_P(ClosingInTime, UnreadArrivedBytesDelayTheCloseForTheSameTime) {
    establish(with(2s));
    send_much(5);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 5; }));
    const Duration time = time_of_close();
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
    EXPECT_GE(time, 2s);
    EXPECT_LE(time, 3s);
}

TEST_P(ClosingInTime, TwoClosesWithoutReadingDoNotWaitForEachOther) {
    for (const bool ended_before : {false, true}) {
        client.forget();
        server.forget();
        client.socket.reset();
        server.socket.reset();
        if (!listener) listen();
        connect();
        ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
        for (Side* const side : {&client, &server}) {
            for (int i = 0; i < 5; ++i)
                ASSERT_EQ(side->send(40'000), Status::ok);
            if (ended_before) side->socket->shutdown_send();
        }
        ASSERT_TRUE(
            bed.run_until([&] { return client.sends_done == 5 && server.sends_done == 5; }));
        const TimePoint begin = bed.world()->now();
        client.socket->close();
        server.socket->close();
        ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
        EXPECT_LE(bed.world()->now() - begin, 1s);
        EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
        EXPECT_EQ(server.closed->reason, CloseReason::unconfirmed) << server.closed->detail;
    }
}

// The limit includes the stream's and the session's close.
TEST_P(ClosingInTime, ACloseTakesOneCloseLimitAtMost) {
    for (const std::size_t count : {20U, 8U}) { // bytes wait here, or only in the peer's ring
        SCOPED_TRACE(count);
        client.forget();
        server.forget();
        client.socket.reset();
        server.socket.reset();
        if (!listener) listen();
        connect(with(2s, 4s));
        ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
        send_much(count);
        ASSERT_TRUE(bed.run_until([&] {
            return client.socket->counters().sent.waits_for_ring > 0 || client.sends_done == count;
        }));
        bed.world()->spend(30s); // a stop before the close does not count
        bed.loop().run_once();
        read_slowly(60'000, 300ms);
        const Duration time = time_of_close();
        slow.reset();
        ASSERT_TRUE(client.closed);
        EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
        EXPECT_THAT(client.closed->detail, HasSubstr("everything within 4000 ms"));
        EXPECT_GE(time, 4s);
        EXPECT_LE(time, 5s);
    }
}

TEST_P(ClosingInTime, AStopOfTheClosingProcessIsNotBlamedOnThePeer) {
    for (const Duration stop : {Duration{30s}, Duration{100s}}) { // longer than both limits
        client.forget();
        server.forget();
        client.socket.reset();
        server.socket.reset();
        if (!listener) listen();
        connect(with(10s, 20s));
        ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
        fill_the_ring();
        client.socket->close();
        for (int i = 0; i < 10; ++i)
            bed.loop().run_once();
        bed.world()->spend(stop);
        read_slowly(100'000, 100ms);
        ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
        slow.reset();
        EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
        EXPECT_EQ(server.received, client.sent);
    }
}

TEST_P(ClosingInTime, AfterAFailedCloseASocketConnectsAndClosesInOrder) {
    establish(with(2s));
    fill_the_ring();
    static_cast<void>(time_of_close());
    ASSERT_TRUE(client.closed);
    ASSERT_TRUE(bed.run_until([&] { return server.closed.has_value(); }));
    client.forget();
    server.forget();
    server.at_raw = nullptr;
    client.socket->connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    ASSERT_EQ(client.send(1'000), Status::ok);
    ASSERT_EQ(server.receive(1'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 1'000; }));
    ASSERT_EQ(server.receive(1'000, Fill::all), Status::ok); // the end
    EXPECT_LE(time_of_close(), 1s);
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
}

INSTANTIATE_TEST_SUITE_P(Beds, ClosingInTime, simulated_stages(), stage_name);

// On this bed a write has left when the peer has it. (A real kernel accepts little more than its
// buffers hold; the simulator's accepts everything.)
using ClosingOverASlowLink = ClosingInTime;
INSTANTIATE_TEST_SUITE_P(Beds, ClosingOverASlowLink,
                         stages_on(testing::Values(netio::test::Bed::sim_verbs)), stage_name);

// However large a send is: each completed transfer shows progress of the peer.
TEST_P(ClosingOverASlowLink, WaitsForALargeSend) {
    constexpr std::size_t large = 48 * 1024 * 1024;
    RegisteredBuffer from{large};
    RegisteredBuffer to{large, netio::Access::remote_write};
    bed.sim()->network().set_path(0, 0, {.bytes_per_second = 20 * 1024 * 1024});
    establish(with(1s));
    std::uint64_t received = 0;
    server.at_raw = [&](const Received& got) {
        ++server.receives_completed;
        received += got.bytes;
    };
    ASSERT_EQ(server.socket->receive(to.slice(), Cookie{server.receives++}, Fill::all), Status::ok);
    ASSERT_EQ(client.socket->send(from.slice(), Cookie{client.sends++}), Status::ok);
    const Duration time = time_of_close();
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_GE(time, 2s);
    EXPECT_EQ(received, large);
}

} // namespace
} // namespace netio::stream::test::close_in_time_test
