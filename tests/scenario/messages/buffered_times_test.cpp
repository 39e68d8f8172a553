// SPDX-License-Identifier: Apache-2.0

// When pages leave by a timer, in virtual time; and what happens to the rest of a page.

#include "tests/scenario/messages/buffered_fixture.hpp"

#include <gmock/gmock.h>

namespace netio::test::buffered_times_test {
namespace {

using namespace std::chrono_literals;

class BufferedTimes : public BufferedMessages {
  protected:
    void pass(Duration time) {
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
    }
    std::uint64_t pages() const { return socket->counters().pages; }
};

INSTANTIATE_TEST_SUITE_P(Beds, BufferedTimes, simulated_beds(), bed_name);

TEST_P(BufferedTimes, WithoutAFlushTimeNoPageLeavesByItself) {
    listen();
    connect(patient);
    ASSERT_EQ(send(content(40, 1)), Status::ok);
    pass(30s);
    EXPECT_EQ(pages(), 0U);
    EXPECT_TRUE(receiver.messages.empty());
    socket->flush();
    EXPECT_TRUE(arrived(1));
}

// A flush by the user does not restart the timer, which counts from its own last flush.
TEST_P(BufferedTimes, AfterAFlushTheTimerIsIdleUntilTheNextPage) {
    listen();
    connect({.flush_time = 20ms});
    ASSERT_EQ(send(content(40, 1)), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return pages() == 1; }));
    pass(5ms);
    ASSERT_EQ(send(content(40, 2)), Status::ok);
    socket->flush();
    EXPECT_EQ(pages(), 2U);
    pass(20ms);
    const TimePoint begin = bed.loop().now();
    ASSERT_EQ(send(content(40, 3)), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return pages() == 3; }));
    EXPECT_LT(bed.loop().now() - begin, 1ms) << "the timer's last flush was 25 ms ago";
}

TEST_P(BufferedTimes, AReceiverThatAbortsInsideAPageGetsNoMoreOfItsMessages) {
    listen();
    connect(patient);
    receiver.at_message = [&](ReceiveSocket& peer) {
        if (receiver.messages.size() == 3) peer.abort();
    };
    for (unsigned i = 0; i < 10; ++i)
        ASSERT_EQ(send(content(20, i)), Status::ok);
    socket->flush();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages.size(), 3U);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::local);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::lost);
}

} // namespace
} // namespace netio::test::buffered_times_test
