// SPDX-License-Identifier: Apache-2.0

// A stream over a long distance, in frames: data in flight fills the path, and few control messages
// are sent.

#include "tests/scenario/stream/pair.hpp"

#include <chrono>

namespace netio::stream::test::long_way_test {
namespace {

using namespace std::chrono_literals;
using netio::test::Bed;

constexpr std::uint64_t window_bytes = 1 << 20;
constexpr auto round_trip = 20ms;
// Four fifths of a window in a round trip.
constexpr double bytes_per_second = 0.8 * window_bytes * (1s / round_trip);

class LongWay : public testing::Test, protected Pair {
  protected:
    LongWay() : Pair{Bed::sim_tcp, RemoteWrites::never} {}

    static StreamSocket::Options options() {
        StreamSocket::Options options{.receiver = improved_receiver(16 * 1024, window_bytes)};
        // A send is half a frame; sends and receives both count as long.
        options.sender.coalesce_limit_bytes = options.sender.direct_threshold_bytes = 0;
        options.receiver.advert_threshold_bytes = 0;
        options.frame_bytes = 2 * send_bytes;
        options.session.window_limit = window_bytes + window_bytes / 100;
        // The simulator's handshake does not measure the distance.
        options.round_trip = round_trip;
        return options;
    }
    void establish_far_away() {
        bed.sim()->network().set_path(
            0, 0, {.delay = round_trip / 2, .bytes_per_second = bytes_per_second});
        establish(options(), options());
    }
    // Returns the time that this many bytes take.
    std::chrono::duration<double> carry(std::uint64_t bytes) {
        const std::uint64_t end = server.received + bytes;
        const netio::TimePoint begin = bed.loop().now();
        EXPECT_TRUE(bed.run_until([&] {
            while (client.sends - client.sends_completed < 200)
                EXPECT_EQ(client.send(send_bytes), Status::ok);
            while (server.receives - server.receives_completed < receive_count)
                EXPECT_EQ(server.receive(receive_bytes, Fill::all), Status::ok);
            return server.received >= end || client.closed || server.closed;
        }));
        return bed.loop().now() - begin;
    }

    void pass(netio::Duration time) {
        bool passed = false;
        netio::Timer timer{bed.loop(), [&] { passed = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return passed; }));
    }
    std::uint64_t controls_received() const { return server.socket->counters().controls; }

    static constexpr std::size_t send_bytes = 4 * 1024;
    static constexpr std::size_t receive_bytes = 8 * 1024;
    static constexpr std::size_t receive_count = 8;
};

TEST_F(LongWay, IsFilled) {
    establish_far_away();
    carry(16 * window_bytes); // until ring and windows have their final size
    EXPECT_EQ(server.socket->counters().received.ring_bytes, window_bytes);
    EXPECT_LT(carry(16 * window_bytes).count(),
              16 * static_cast<double>(window_bytes) / bytes_per_second / 0.9);
}

TEST_F(LongWay, IsFilledSoon) {
    establish_far_away();
    // A ring of 16 KiB carries a fiftieth of it, and has to double six times.
    EXPECT_LT(carry(4 * window_bytes) / round_trip, 25.);
}

TEST_F(LongWay, UsesFewControlMessages) {
    establish_far_away();
    carry(16 * window_bytes);
    const std::uint64_t before = controls_received();
    const double trips = carry(16 * window_bytes) / round_trip;
    const auto controls = static_cast<double>(controls_received() - before);
    EXPECT_LE(controls / trips, 2 * 16 + 4.) << "in half of it, as measured when connecting";
    EXPECT_GE(controls / trips, 4.) << "otherwise the sender would wait for it";
}

TEST_F(LongWay, DelayedReportsAreSentInTheEnd) {
    establish_far_away();
    carry(16 * window_bytes);
    pass(1s); // everything has arrived and is acknowledged
    for (int i = 0; i < 2; ++i) {
        const std::uint64_t before = controls_received();
        ASSERT_EQ(server.receive(receive_bytes, Fill::all), Status::ok);
        pass(i == 0 ? 10us : 10ms);
        EXPECT_EQ(controls_received(), before + 1) << i;
    }
}

TEST_F(LongWay, OnAShortPathEverythingIsReportedAtOnce) {
    StreamSocket::Options near = options();
    near.round_trip = 0ns;
    bed.sim()->network().set_path(0, 0, {.delay = 2ms}); // while it connects
    establish(near, near);
    bed.sim()->network().set_path(0, 0, {});
    pass(100ms);
    for (int i = 0; i < 10; ++i) {
        const std::uint64_t before = controls_received();
        ASSERT_EQ(server.receive(receive_bytes, Fill::all), Status::ok);
        pass(10us);
        EXPECT_EQ(controls_received(), before + 1) << i;
    }
}

} // namespace
} // namespace netio::stream::test::long_way_test
