// SPDX-License-Identifier: Apache-2.0

// A user with slow handlers, or with endless calls in them, leaves time for other users of the
// loop.

#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::turn_test {
namespace {

constexpr std::size_t count = 50;

class StreamTurns : public PairOnBed {
  protected:
    // Makes the handlers of one side so slow that no turn has time for two.
    void take_long() {
        ++calls;
        bed.world()->spend(2 * netio::EventLoop::Options{}.turn_limit);
    }
    bool run_with_a_call_a_turn_until(const std::function<bool()>& done) {
        std::size_t before = calls;
        return bed.run_until([&] {
            EXPECT_LE(calls - std::exchange(before, calls), 1U);
            return done();
        });
    }

    std::size_t calls = 0;
};

INSTANTIATE_TEST_SUITE_P(Stages, StreamTurns, simulated_stages(), stage_name);

TEST_P(StreamTurns, CompleteOneReceiveIfEachHandlerIsSlow) {
    establish();
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(server.receive(8, Fill::all), Status::ok);
    server.at_received = [&](const Received&) { take_long(); };
    server.at_end = [&] {
        EXPECT_EQ(server.receives_completed, count) << "it comes after them";
        take_long();
    };
    ASSERT_EQ(client.send(8 * count), Status::ok);
    client.socket->shutdown_send();
    ASSERT_TRUE(run_with_a_call_a_turn_until([&] { return server.ended; }));
    EXPECT_EQ(server.received, 8 * count);
}

TEST_P(StreamTurns, CompleteOneSendIfEachHandlerIsSlow) {
    establish();
    client.at_sent = [&] { take_long(); };
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(client.send(8), Status::ok);
    ASSERT_TRUE(run_with_a_call_a_turn_until([&] { return client.sends_done == count; }));
}

TEST_P(StreamTurns, CompleteOneCanceledOperationIfEachHandlerIsSlow) {
    establish({}, {.receiver = improved_receiver(1'000)});
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(client.send(5'000), Status::ok); // stays because there is no receive
        ASSERT_EQ(client.receive(8, Fill::all), Status::ok);
    }
    client.at_sent = [&] { take_long(); };
    client.at_received = [&](const Received&) { take_long(); };
    client.at_closed = [&] { take_long(); };
    client.socket->abort();
    ASSERT_TRUE(run_with_a_call_a_turn_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(calls, 2 * count + 1);
    EXPECT_EQ(client.closed->reason, CloseReason::local);
}

TEST_P(StreamTurns, EndAlthoughEachEmptySendIsFollowedByAnother) {
    establish();
    const Slice nothing = client.outgoing.slice(0, 0);
    client.at_raw_sent = [&] {
        if (++calls == count) return;
        ASSERT_EQ(client.socket->send(nothing, Cookie{0}), Status::ok);
    };
    ASSERT_EQ(client.socket->send(nothing, Cookie{0}), Status::ok);
    ASSERT_TRUE(run_with_a_call_a_turn_until([&] { return calls == count; }));
}

} // namespace
} // namespace netio::stream::test::turn_test
