// SPDX-License-Identifier: Apache-2.0

// Send times of a send socket: they count only messages that have left.

#include "tests/scenario/messages/messages_fixture.hpp"

#include <chrono>

namespace netio::test::send_times_test {
namespace {

using namespace std::chrono_literals;

class SendTimesOfMessages : public Messages {
  protected:
    LatencyHistogram latency(const SendSocket& socket) const { return socket.snapshot().latency; }
    void wait(Duration time) {
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
    }
    RegisteredBuffer memory{1000};
};

TEST_P(SendTimesOfMessages, AreCountedOnceTheyHaveLeft) {
    listen();
    const auto socket = connected(sender);
    EXPECT_EQ(latency(*socket).count(), 0U);
    for (std::uint64_t i = 0; i < 5; ++i)
        ASSERT_EQ(socket->send(memory.slice(), Cookie{i}), Status::ok);
    EXPECT_EQ(latency(*socket).count(), 0U);
    // A send without a completion is not counted.
    ASSERT_EQ(socket->send_inline(std::vector<std::byte>(8)), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == 6 && sender.done == 5; }));
    EXPECT_EQ(latency(*socket).count(), 5U);
}

TEST_P(SendTimesOfMessages, ExcludeCanceledSendsAndContinueOnTheNextConnection) {
    listen();
    const auto socket = connected(sender);
    std::uint64_t sent = 0;
    while (socket->send(memory.slice(), Cookie{sent}) == Status::ok)
        ++sent;
    socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    ASSERT_EQ(sender.completions.size(), sent);
    EXPECT_EQ(latency(*socket).count(), sender.done);
    wait(1min * (GetParam() < Bed::fabric_tcp)); // only in virtual time
    const std::size_t done = sender.done;
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    ASSERT_EQ(socket->send(memory.slice(), Cookie{sent}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return sender.done == done + 1; }));
    EXPECT_EQ(latency(*socket).count(), done + 1);
    EXPECT_LT(latency(*socket).longest(), 30s); // its own time, not the time of an earlier send
}

INSTANTIATE_TEST_SUITE_P(Beds, SendTimesOfMessages, all_beds(), bed_name);

} // namespace
} // namespace netio::test::send_times_test
