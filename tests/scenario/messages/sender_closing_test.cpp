// SPDX-License-Identifier: Apache-2.0

// How long the end of a netio::Sender takes while messages wait in its queue, and what happens to
// them: the receiver takes nothing, a little at a time, or too little in all.

#include "tests/scenario/messages/sender_scenario.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <optional>

namespace netio::sender_closing_test {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

class ClosingSender : public test::SenderScenario {
  protected:
    static constexpr std::size_t count = 200;

    // Sends more than receive buffers and pages hold, to a receiver that reads little at once.
    void send_much() {
        options.close_timeout = 2s;
        options.close_limit = 5s;
        ListenSocket::Options with;
        with.session.receive_count = 4;
        listen(with);
        receiver.at_message = [this](ReceiveSocket& socket) {
            if (receiver.messages.size() % at_once == 0) {
                socket.pause();
                paused = &socket;
            }
        };
        for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(sender->try_send(test::content(200, 0)), Status::ok);
        bed.let_pass(10s); // nothing counts before the end
        ASSERT_NE(paused, nullptr);
    }
    void read_slowly(Duration pause) {
        slow.emplace(bed.loop(), [this, pause] {
            paused->resume();
            slow->start(pause);
        });
        slow->start(pause);
    }
    Duration time_to_the_end() {
        const TimePoint begin = bed.world()->now();
        sender->close();
        EXPECT_TRUE(ends());
        slow.reset();
        return bed.world()->now() - begin;
    }
    void expect_all_counted() const {
        const netio::Sender::Stats stats = sender->stats();
        EXPECT_GT(stats.unsent, 0U);
        EXPECT_EQ(stats.sent + stats.unsent, count);
        EXPECT_GT(stats.unconfirmed_frames, 0U);
        EXPECT_EQ(lines.count("messages were not sent"), 1U);
    }
    void expect_all_received() const {
        EXPECT_EQ(receiver.messages.size(), count);
        EXPECT_EQ(sender->stats().unsent, 0U);
        EXPECT_EQ(sender->stats().unconfirmed_frames, 0U);
        EXPECT_THAT(lines.all(), IsEmpty());
    }

    std::size_t at_once = 1;
    ReceiveSocket* paused = nullptr;
    std::optional<Timer> slow;
};

INSTANTIATE_TEST_SUITE_P(Beds, ClosingSender, test::simulated_beds(), test::bed_name);

TEST_P(ClosingSender, WithoutProgressTakesItsTimeOnly) {
    send_much();
    ASSERT_LT(sender->stats().sent, count);
    const Duration time = time_to_the_end();
    EXPECT_GE(time, 2s);
    EXPECT_LE(time, 3s);
    EXPECT_EQ(lines.count("has received nothing more for 2000 ms"), 1U);
    expect_all_counted();
}

TEST_P(ClosingSender, WaitsForAReceiverThatMakesProgress) {
    at_once = 50;
    send_much();
    read_slowly(1s);
    EXPECT_GE(time_to_the_end(), 3s);
    expect_all_received();
}

// For its pages the socket knows when the last one was received.
TEST_P(ClosingSender, AnEmptyQueueLeavesTheTimeLimitOfTheSocket) {
    at_once = count - 10;
    send_much();
    ASSERT_EQ(sender->stats().sent, count);
    at_once = 5;
    read_slowly(1500ms);
    EXPECT_GE(time_to_the_end(), 3s);
    expect_all_received();
}

TEST_P(ClosingSender, ASlowReceiverIsAbandonedAtTheLimit) {
    at_once = 5;
    send_much();
    read_slowly(500ms);
    const Duration time = time_to_the_end();
    EXPECT_GE(time, 5s);
    EXPECT_LE(time, 5s + 100ms);
    EXPECT_EQ(lines.count("has not received everything within 5000 ms"), 1U);
    expect_all_counted();
}

} // namespace
} // namespace netio::sender_closing_test
