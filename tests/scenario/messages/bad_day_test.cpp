// SPDX-License-Identifier: Apache-2.0

// Combined faults: connecting, closing and pausing while names are resolved, hosts are silent,
// resources are short, and peers vanish.

#include "netio/messages/buffered_send_socket.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <string>

namespace netio::test::bad_day_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class BadDay : public Messages {
  protected:
    void dial(const std::string& host, const SendSocket::Options& options = {}) {
        socket = std::make_unique<SendSocket>(bed.transport(), options, sender);
        socket->connect({.host = host, .port = address.port});
    }
    Duration since(TimePoint begin) { return bed.world()->now() - begin; }
    // No further callback follows.
    void expect_silence() {
        const std::size_t closed = sender.closed.size();
        const int connected = sender.connected;
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(30s);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
        EXPECT_EQ(sender.closed.size(), closed);
        EXPECT_EQ(sender.connected, connected);
    }

    std::unique_ptr<SendSocket> socket;
};

INSTANTIATE_TEST_SUITE_P(Beds, BadDay, simulated_beds(), bed_name);

TEST_P(BadDay, AnEndDuringANameLookupIsReportedOnceAndAtOnce) {
    using End = void (SendSocket::*)();
    for (const End end : {&SendSocket::close, &SendSocket::abort}) {
        sender = {};
        listen();
        bed.sim()->delay_resolution(20s);
        dial(address.host);
        const TimePoint begin = bed.world()->now();
        (socket.get()->*end)();
        EXPECT_TRUE(sender.closed.empty()) << "no callback within a call";
        (socket.get()->*end)();
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
        EXPECT_LT(since(begin), 1s);
        expect_silence();
        // It may connect again, also in its handler.
        bed.sim()->delay_resolution(0s);
        sender.at_closed = [&] { socket->connect(address); };
        socket->connect(address);
        socket->abort();
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
        sender.at_closed = nullptr;
        socket.reset();
        listener.reset();
    }
}

TEST_P(BadDay, ASocketMayBeDestroyedDuringANameLookup) {
    listen();
    bed.sim()->delay_resolution(5s);
    dial(address.host);
    bed.loop().run_once();
    socket.reset();
    expect_silence();
    EXPECT_EQ(receiver.connected, 0U);
}

// Two addresses refuse; the third one accepts.
TEST_P(BadDay, TheAddressesOfANameAreTriedUntilOneAccepts) {
    listen();
    bed.sim()->name("several", {"10.9.9.9", "10.9.9.8", address.host});
    dial("several");
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1 || !sender.closed.empty(); }));
    EXPECT_EQ(sender.connected, 1);
    ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
}

TEST_P(BadDay, AnEndDuringASilentAttemptIsReportedAndNoAddressFollows) {
    listen();
    bed.sim()->name("several", {"10.9.9.9", address.host});
    bed.sim()->ignore_connects(true);
    dial("several");
    Timer end{bed.loop(), [&] {
                  bed.sim()->ignore_connects(false);
                  socket->close();
              }};
    end.start(2s);
    const TimePoint begin = bed.world()->now();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
    EXPECT_LT(since(begin), 3s);
    expect_silence();
    EXPECT_EQ(receiver.connected, 0U);
}

TEST_P(BadDay, EachSilentAddressTakesAConnectTimeoutAndAllAreNamed) {
    listen();
    bed.sim()->name("several", {"10.9.9.9", "10.9.9.8", "10.9.9.7"});
    bed.sim()->ignore_connects(true);
    dial("several");
    const TimePoint begin = bed.world()->now();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::connect_timeout);
    for (const char* const host : {"10.9.9.9", "10.9.9.8", "10.9.9.7"})
        EXPECT_THAT(sender.closed[0].detail, HasSubstr(host));
    EXPECT_GE(since(begin), 15s);
    EXPECT_LE(since(begin), 16s);
}

TEST_P(BadDay, ALackOfDescriptorsIsReportedAndALaterAttemptSucceeds) {
    listen();
    bed.sim()->name("several", {"10.9.9.9", address.host});
    bed.sim()->refuse_connecting(true);
    dial("several");
    EXPECT_TRUE(sender.closed.empty()) << "no callback within a call";
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::failed);
    EXPECT_THAT(sender.closed[0].detail, HasSubstr("endpoint"));
    bed.sim()->refuse_connecting(false);
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
}

TEST_P(BadDay, ALackOfLookupThreadsIsReportedAlsoForAReconnection) {
    listen();
    bed.sim()->refuse_searching(true);
    dial(address.host);
    EXPECT_TRUE(sender.closed.empty()) << "no callback within a call";
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::failed);
    EXPECT_THAT(sender.closed[0].detail, HasSubstr(to_string(address)));
    EXPECT_THAT(sender.closed[0].detail, HasSubstr("no thread"));
    bed.sim()->refuse_searching(false);
    dial(address.host, {.reconnect = true});
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    bed.sim()->refuse_searching(true);
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return sender.closed.size() == 3; }));
    EXPECT_THAT(sender.closed[2].detail, HasSubstr("no thread"));
    bed.sim()->refuse_searching(false);
    listener = std::make_unique<ListenSocket>(
        bed.transport(), ListenSocket::Options{.listen = {address}, .allow_remote_anonymous = true},
        receiver);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
}

TEST_P(BadDay, AListenerWithoutEndpointsReportsItAndAcceptsTheNextPeer) {
    listen();
    bed.sim()->refuse_endpoints(true);
    dial(address.host);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(bed.seen().accept_failed.size(), 1U);
    bed.sim()->refuse_endpoints(false);
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
}

// Messages that arrived before are kept for the user; the end of the listener does not wait for
// them.
TEST_P(BadDay, APausedReceiverOfAPeerThatVanishedEndsWhenItIsClosed) {
    for (const bool whole : {false, true}) { // close the receive socket, or the whole listener
        sender = {};
        receiver = {};
        listen();
        const std::uint64_t connecting = bed.sim()->next_connection();
        dial(address.host);
        ASSERT_TRUE(
            bed.run_until([&] { return sender.connected == 1 && receiver.connected == 1; }));
        ReceiveSocket& peer = *listener->peers().front();
        peer.pause();
        const std::array<std::byte, 8> bytes{};
        for (int i = 0; i < 5; ++i)
            ASSERT_EQ(socket->send_inline(bytes), Status::ok);
        for (int i = 0; i < 50; ++i)
            bed.loop().run_once(bed.world()->now() + 1ms);
        bed.sim()->cut(connecting);
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_TRUE(receiver.closed.empty()) << "arrived messages are kept, the end follows";
        whole ? listener->close() : peer.close();
        ASSERT_TRUE(bed.run_until([&] { return !receiver.closed.empty(); }));
        EXPECT_TRUE(receiver.messages.empty());
        EXPECT_NE(receiver.closed[0].reason, CloseReason::orderly);
        socket.reset();
        listener.reset();
    }
}

TEST_P(BadDay, TwoListenersOfOneProcessAreIndependent) {
    listen();
    Receiver other;
    auto second =
        std::make_unique<ListenSocket>(bed.transport(),
                                       ListenSocket::Options{.listen = {{"10.0.0.2", address.port}},
                                                             .allow_remote_anonymous = true},
                                       other);
    Sender to_second;
    SendSocket away{bed.transport(), {}, to_second};
    away.connect({"10.0.0.2", address.port});
    dial(address.host);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1 && to_second.connected == 1; }));
    second.reset();
    ASSERT_TRUE(bed.run_until([&] { return !to_second.closed.empty(); }));
    expect_silence();
    const std::array<std::byte, 8> bytes{};
    ASSERT_EQ(socket->send_inline(bytes), Status::ok);
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(receiver.messages.size(), 1U);
    EXPECT_TRUE(other.messages.empty());
}

} // namespace
} // namespace netio::test::bad_day_test
