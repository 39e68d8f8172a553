// SPDX-License-Identifier: Apache-2.0

// Send times of a stream: they count only sends that have left.

#include "tests/scenario/stream/pair.hpp"

#include <chrono>

namespace netio::stream::test::send_times_test {
namespace {

using namespace std::chrono_literals;

class SendTimesOfStreams : public PairOnBed {
  protected:
    // Sends more than the ring holds; all sends use the same memory, because the bytes are not
    // checked.
    void send_too_much() {
        for (int i = 0; i < 20; ++i)
            ASSERT_EQ(
                client.socket->send(client.outgoing.slice(0, 100'000), Cookie{client.sends++}),
                Status::ok);
        ASSERT_TRUE(
            bed.run_until([&] { return client.socket->counters().sent.waits_for_ring > 0; }));
    }
};

TEST_P(SendTimesOfStreams, AreCountedOnceAllOfASendHasLeft) {
    establish();
    ASSERT_EQ(client.send(100), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 1; }));
    EXPECT_EQ(client.socket->counters().latency.count(), 1U);
    send_too_much();
    const netio::TimePoint since = bed.loop().now();
    bool over = false;
    netio::Timer timer{bed.loop(), [&] { over = true; }};
    timer.start(20ms);
    ASSERT_TRUE(bed.run_until([&] { return over; }));
    const netio::Duration waited = bed.loop().now() - since;
    const netio::LatencyHistogram meanwhile = client.socket->counters().latency;
    EXPECT_EQ(meanwhile.count(), client.sends_done);
    EXPECT_LT(client.sends_done, client.sends);

    server.at_raw = [this](const Received&) {
        static_cast<void>(server.receive(50'000, Fill::some));
    };
    ASSERT_EQ(server.receive(50'000, Fill::some), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == client.sends; }));
    EXPECT_EQ(client.socket->counters().latency.count(), client.sends);
    EXPECT_GE(client.socket->counters().latency.longest(), waited);
}

TEST_P(SendTimesOfStreams, ExcludeCanceledSendsAndSurviveTheConnection) {
    establish();
    send_too_much();
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_LT(client.sends_done, client.sends);
    EXPECT_EQ(client.socket->counters().latency.count(), client.sends_done);
}

INSTANTIATE_TEST_SUITE_P(Beds, SendTimesOfStreams, all_stages(), stage_name);

} // namespace
} // namespace netio::stream::test::send_times_test
