// SPDX-License-Identifier: Apache-2.0

// Buffered point to point: pages at the end of a connection or of a socket.

#include "tests/scenario/messages/buffered_fixture.hpp"

#include <gmock/gmock.h>

namespace netio::test::buffered_end_test {
namespace {

using namespace std::chrono_literals;

using EndOfBufferedMessages = BufferedMessages;

TEST_P(EndOfBufferedMessages, InPagesArriveBeforeTheDisconnect) {
    listen({.session = {.receive_count = 4}}); // fewer than pages, so some wait
    connect(
        {.socket = {.session = {.receive_buffer_bytes = 256, .receive_count = 16, .send_count = 2}},
         .page_size_bytes = 1024,
         .page_count = 16,
         .flush_time = 0us});
    for (unsigned i = 0; i < 90; ++i)
        ASSERT_EQ(send(content(150, i)), Status::ok);
    EXPECT_GT(socket->pages_in_use(), 10U);
    socket->close();
    socket->close(); // one call is enough
    EXPECT_EQ(send({}), Status::closed);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly);
    ASSERT_EQ(receiver.messages.size(), 90U);
    for (unsigned i = 0; i < 90; ++i)
        ASSERT_EQ(receiver.messages[i].bytes, content(150, i));
    EXPECT_EQ(sender.closed.size(), 1U);
    EXPECT_EQ(sender.room, 0);
    // It may connect again, and close again.
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    EXPECT_EQ(send(content(150, 0)), Status::ok);
    socket->close();
    ASSERT_TRUE(arrived(91));
    ASSERT_TRUE(bed.run_until([&] { return sender.closed.size() == 2; }));
    EXPECT_EQ(sender.closed[1].reason, CloseReason::orderly);
}

TEST_P(EndOfBufferedMessages, IsTheEndOfAWaitForAPage) {
    listen();
    connect(patient);
    while (send(content(1020, 1)) == Status::ok) {
    }
    socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return sender.closed.size() == 1; }));
    EXPECT_EQ(sender.room, 0);
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    ASSERT_EQ(send(content(1020, 1)), Status::ok);
    socket->flush();
    ASSERT_TRUE(bed.run_until([&] { return socket->pages_in_use() == 0; }));
    EXPECT_EQ(sender.room, 0) << "nothing was refused on this connection";
}

TEST_P(EndOfBufferedMessages, OfADeadPeerReleaseEveryPage) {
    listen();
    connect(patient);
    for (unsigned i = 0; i < 3; ++i)
        ASSERT_EQ(send(content(1020, i)), Status::ok);
    ASSERT_EQ(send(content(10, 3)), Status::ok); // in the open page
    EXPECT_EQ(socket->counters().pages, 3U);
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::lost);
    EXPECT_EQ(socket->pages_in_use(), 0U);
    // It may connect again, and no earlier message is sent.
    receiver.messages.clear();
    sender.connected = 0;
    listen();
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    ASSERT_EQ(send(content(77, 5)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(1));
    EXPECT_EQ(receiver.messages[0].bytes, content(77, 5));
}

TEST_P(EndOfBufferedMessages, AfterAReceiverClosesInsideAPageAreNotDelivered) {
    listen();
    connect(patient);
    receiver.at_message = [&](ReceiveSocket& peer) {
        if (receiver.messages.size() == 3) peer.close();
    };
    for (unsigned i = 0; i < 10; ++i)
        ASSERT_EQ(send(content(20, i)), Status::ok);
    socket->flush();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages.size(), 3U);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_EQ(sender.closed[0].unconfirmed_frames, 1U) << "the rest of the page";
}

// The receiver's user got all that was sent, but not all that was accepted.
TEST_P(EndOfBufferedMessages, AcceptedButUnsentMakeTheReceiversEndUnconfirmed) {
    listen();
    connect(patient);
    ASSERT_EQ(send(content(20, 1)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(1));
    ASSERT_EQ(send(content(20, 2)), Status::ok); // in the open page
    listener->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_EQ(sender.closed[0].unconfirmed_frames, 1U);
    EXPECT_THAT(sender.closed[0].detail, testing::HasSubstr("pages that were not sent: 1"));
}

TEST_P(EndOfBufferedMessages, AreNotAcceptedAfterAbortAlthoughAPageHasSpace) {
    listen();
    connect(patient);
    ASSERT_EQ(send(content(20, 1)), Status::ok);
    socket->abort();
    EXPECT_EQ(send(content(20, 2)), Status::closed);
    EXPECT_EQ(socket->counters().messages, 1U);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
    EXPECT_EQ(sender.closed[0].unconfirmed_frames, 1U) << "the page";
    EXPECT_TRUE(receiver.messages.empty());
    // The next connection starts without these messages.
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    ASSERT_EQ(send(content(20, 3)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(1));
    EXPECT_EQ(receiver.messages[0].bytes, content(20, 3));
}

// In each of their handlers, while pages are filled, queued, transferred and unpacked.
TEST_P(EndOfBufferedMessages, SocketsMayBeDestroyedInEveryHandler) {
    using SenderHook = std::function<void()> BufferedSender::*;
    using ReceiverHook = std::function<void(ReceiveSocket&)> Receiver::*;
    const SenderHook of_sender[] = {&BufferedSender::at_connected, &BufferedSender::at_room,
                                    &BufferedSender::at_closed};
    const ReceiverHook of_receiver[] = {&Receiver::at_connected, &Receiver::at_message,
                                        &Receiver::at_closed};
    constexpr std::size_t cases = std::size(of_sender) + std::size(of_receiver);
    for (std::size_t i = 0; i < 2 * cases; ++i) {
        SCOPED_TRACE(i);
        const std::size_t hook = i / 2;
        // Many messages per page, or many pages per message.
        const Bytes message(i % 2 == 0 ? 100 : 3000);
        receiver = {};
        sender = {};
        listen({.session = {.receive_count = 8}});
        socket = std::make_unique<BufferedSendSocket>(bed.transport(), patient, sender);
        bool destroyed = false;
        const auto pump = [&] {
            while (socket && socket->send(message) == Status::ok) {
            }
        };
        sender.at_connected = pump;
        sender.at_room = pump;
        if (hook < std::size(of_sender)) {
            sender.*of_sender[hook] = [&] {
                socket.reset();
                destroyed = true;
            };
        } else {
            receiver.*of_receiver[hook - std::size(of_sender)] = [&](ReceiveSocket&) {
                listener.reset();
                destroyed = true;
            };
        }
        socket->connect(address);
        ASSERT_TRUE(bed.run_until([&] { return destroyed || receiver.messages.size() > 100; }));
        // Handlers that see only the end: end the other side.
        if (!destroyed && hook < std::size(of_sender)) listener.reset();
        if (!destroyed && hook >= std::size(of_sender)) socket.reset();
        ASSERT_TRUE(bed.run_until([&] { return destroyed; }));
        socket.reset();
        listener.reset();
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, EndOfBufferedMessages, all_beds(), bed_name);

// --- only in the simulator ------------------------------------------------------------------

using BufferedMessagesOnAnUncertainWay = BufferedMessages;

TEST_P(BufferedMessagesOnAnUncertainWay, ForAReceiverWithoutProgressEndUnconfirmed) {
    listen({.session = {.receive_count = 4}});
    const std::uint64_t accepting = bed.sim()->next_connection() + 1;
    auto options = patient;
    options.page_count = 16;
    options.socket.session.close_timeout = 300ms;
    connect(options);
    ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
    bed.sim()->hold(accepting);
    for (unsigned i = 0; i < 16; ++i)
        ASSERT_EQ(send(content(1020, i)), Status::ok);
    const TimePoint begin = bed.loop().now();
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_THAT(sender.closed[0].detail, testing::HasSubstr("300 ms"));
    EXPECT_GE(bed.loop().now() - begin, 300ms);
}

// The time-out counts from the last progress: all messages together take longer.
TEST_P(BufferedMessagesOnAnUncertainWay, OfASlowReceiverArriveAll) {
    listen({.session = {.receive_count = 4}});
    const std::uint64_t accepting = bed.sim()->next_connection() + 1;
    auto options = patient;
    options.page_count = 16;
    options.socket.session.close_timeout = 300ms;
    connect(options);
    ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
    bed.sim()->delay(accepting, 200ms);
    for (unsigned i = 0; i < 16; ++i)
        ASSERT_EQ(send(content(1020, i)), Status::ok);
    const TimePoint begin = bed.loop().now();
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages.size(), 16U);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly);
    EXPECT_GT(bed.loop().now() - begin, 600ms);
}

TEST_P(BufferedMessagesOnAnUncertainWay, AReceiverThatPausesForeverIsNotifiedThatItIsTooSlow) {
    for (const std::size_t receives : {64U, 4U}) { // with 64 all has left, with 4 pages wait
        SCOPED_TRACE(receives);
        receiver = {};
        sender = {};
        // Its heartbeats would make the sender return credits, using its last one.
        listen({.session = {.receive_count = receives, .heartbeat = 0ms}});
        auto options = patient;
        options.page_count = 16;
        connect(options);
        ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
        ReceiveSocket& paused = *listener->peers().front();
        paused.pause();
        for (unsigned i = 0; i < 10; ++i)
            ASSERT_EQ(send(content(1020, i)), Status::ok);
        socket->close();
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed) << sender.closed[0].detail;
        EXPECT_EQ(sender.closed[0].unconfirmed_frames, 10U);
        paused.resume();
        ASSERT_TRUE(bed.run_until([&] { return !receiver.closed.empty(); }));
        EXPECT_EQ(receiver.closed[0].reason, CloseReason::too_slow) << receiver.closed[0].detail;
        EXPECT_THAT(receiver.closed[0].detail, testing::HasSubstr("nothing for 10000 ms"));
    }
}

// The limit includes the socket's and the session's close.
TEST_P(BufferedMessagesOnAnUncertainWay, ACloseTakesOneCloseLimitAtMost) {
    // One page every five seconds: the last one leaves before 30 s but is not received then, or it
    // is still queued.
    for (const unsigned pages : {7U, 8U}) {
        SCOPED_TRACE(pages);
        socket.reset();
        receiver = {};
        sender = {};
        listen({.session = {.receive_count = 4}});
        auto options = patient;
        options.page_count = 16;
        options.socket.session.close_timeout = 10s;
        options.socket.session.close_limit = 30s;
        connect(options);
        ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
        ReceiveSocket& slow = *listener->peers().front();
        slow.pause();
        receiver.at_message = [](ReceiveSocket& peer) { peer.pause(); };
        Timer next{bed.loop(), [&] {
                       if (receiver.closed.empty()) slow.resume();
                       next.start(5s);
                   }};
        next.start(5s);
        for (unsigned i = 0; i < pages; ++i)
            ASSERT_EQ(send(content(1020, i)), Status::ok);
        const TimePoint begin = bed.world()->now();
        socket->close();
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed);
        EXPECT_THAT(sender.closed[0].detail, testing::HasSubstr("everything within 30000 ms"));
        EXPECT_EQ(socket->pages_in_use(), 0U);
        EXPECT_EQ(sender.closed[0].detail.find("were not sent") == std::string::npos, pages == 7);
        EXPECT_LE(bed.world()->now() - begin, 31s);
    }
}

TEST_P(BufferedMessagesOnAnUncertainWay, AStopOfTheSenderWhileItClosesIsNotBlamedOnTheReceiver) {
    for (const Duration stop :
         {Duration{30s}, Duration{100s}}) { // longer than close_timeout; longer than both
        socket.reset();
        receiver = {};
        sender = {};
        listen({.session = {.receive_count = 4}});
        auto options = patient;
        options.page_count = 16;
        connect(options);
        ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
        ReceiveSocket& slow = *listener->peers().front();
        slow.pause();
        for (unsigned i = 0; i < 10; ++i)
            ASSERT_EQ(send(content(1020, i)), Status::ok);
        socket->close();
        for (int i = 0; i < 10; ++i)
            bed.loop().run_once();
        bed.world()->spend(stop);
        Timer go_on{bed.loop(), [&] { slow.resume(); }};
        go_on.start(5ms);
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly) << sender.closed[0].detail;
        EXPECT_EQ(receiver.messages.size(), 10U);
    }
}

TEST_P(BufferedMessagesOnAnUncertainWay, OfASilentPeerReleaseEveryPage) {
    listen();
    const std::uint64_t connecting = bed.sim()->next_connection();
    auto options = patient;
    options.socket.session.heartbeat = 100ms;
    options.socket.session.dead_after = 300ms;
    connect(options);
    bed.sim()->cut(connecting);
    bed.sim()->cut(connecting + 1);
    // Where sends complete without the peer, pages are released until the credits are used up.
    sender.at_room = [&] {
        while (send(content(1020, 1)) == Status::ok) {
        }
    };
    sender.at_room();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::silent);
    EXPECT_EQ(socket->pages_in_use(), 0U);
}

TEST_P(BufferedMessagesOnAnUncertainWay, InPagesThatCannotBeRegisteredEndTheConnection) {
    listen();
    connect(patient);
    bed.sim()->refuse_registrations(true);
    ASSERT_EQ(send(content(100, 1)), Status::ok);
    socket->flush();
    EXPECT_TRUE(sender.closed.empty()) << "no callback within a call";
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::failed);
    EXPECT_THAT(sender.closed[0].detail, testing::HasSubstr("regist"));
    bed.sim()->refuse_registrations(false);
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    ASSERT_EQ(send(content(100, 1)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(1));
}

// The connection breaks at each of the first sends: every page is released exactly once.
TEST_P(BufferedMessagesOnAnUncertainWay, ReleaseEveryPageWhereverTheConnectionBreaks) {
    for (std::size_t nth = 1; nth <= 12; ++nth) {
        SCOPED_TRACE(nth);
        receiver = {};
        sender = {};
        listen();
        bed.sim()->break_at_send(bed.sim()->next_connection(), nth);
        socket = std::make_unique<BufferedSendSocket>(bed.transport(), patient, sender);
        const auto pump = [&] {
            while (socket->send(content(300, 1)) == Status::ok) {
            }
        };
        sender.at_connected = pump;
        sender.at_room = pump;
        socket->connect(address);
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::lost);
        EXPECT_EQ(socket->pages_in_use(), 0U);
        socket.reset();
        listener.reset();
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, BufferedMessagesOnAnUncertainWay, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::buffered_end_test
