// SPDX-License-Identifier: Apache-2.0

// Send sockets that reconnect.

#include "netio/messages/buffered_send_socket.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_listener.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/scenario/stream/two_ways.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/squatter.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <optional>

namespace netio::test::reconnecting_test {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

class BufferedSender final : public BufferedSendSocket::Handler {
  public:
    void on_connected(BufferedSendSocket&) override { ++connected; }
    void on_closed(BufferedSendSocket& socket, const Closed& why) override {
        EXPECT_EQ(socket.pages_in_use(), 0U);
        closed.push_back(why);
        retrying = socket.is_retrying();
    }
    int connected = 0;
    bool retrying = false;
    std::vector<Closed> closed;
};

class ReconnectingSender : public Messages {
  protected:
    // Without delay on the fabric; with the default options in virtual time.
    SendSocket::Options options() {
        SendSocket::Options options{.reconnect = true};
        if (bed.sim() == nullptr) options.retry_interval = 1ms;
        return options;
    }
    void connect() {
        socket = std::make_unique<SendSocket>(bed.transport(), options(), sender);
        socket->connect(address);
    }
    bool closed(std::size_t count) {
        return bed.run_until([&] { return sender.closed.size() >= count; });
    }
    void listen_again(ListenSocket::Options again = {}) {
        again.listen = {address};
        again.allow_remote_anonymous = true;
        listener = std::make_unique<ListenSocket>(bed.transport(), again, receiver);
    }
    bool arrives() {
        const std::size_t before = receiver.messages.size();
        const std::array<std::byte, 3> message{};
        return socket->send_inline(message) == Status::ok &&
               bed.run_until([&] { return receiver.messages.size() > before; });
    }

    bool has_ended_with(CloseReason reason) const {
        return std::ranges::count(sender.closed, reason, &Closed::reason) > 0;
    }
    std::shared_ptr<ServerKeys> keys_of(const KeyFiles& site) {
        return std::make_shared<ServerKeys>(bed.loop(), ServerKeys::Options{.file = site.site()});
    }

    std::unique_ptr<SendSocket> socket;
};

INSTANTIATE_TEST_SUITE_P(Beds, ReconnectingSender, all_beds(), bed_name);

class ReconnectingSenderInTime : public ReconnectingSender {};

INSTANTIATE_TEST_SUITE_P(Beds, ReconnectingSenderInTime, simulated_beds(), bed_name);

TEST_P(ReconnectingSender, ReconnectsToARestartedListener) {
    listen();
    connect();
    for (int life = 1; life <= 3; ++life) {
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == life; }));
        EXPECT_FALSE(socket->is_retrying());
        EXPECT_TRUE(arrives());
        listener.reset();
        ASSERT_TRUE(bed.run_until([&] { return !socket->is_connected(); }));
        EXPECT_TRUE(socket->is_retrying());
        const std::array<std::byte, 3> message{};
        EXPECT_EQ(socket->send_inline(message), Status::closed);
        listen_again();
    }
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 4; }));
    EXPECT_EQ(socket->counters().messages, 3U) << "over all connections";
}

// However short each connection was: its receiver has returned credits.
TEST_P(ReconnectingSenderInTime, RetriesSoonAfterEveryWorkingConnection) {
    listen();
    connect();
    for (int life = 1; life <= 8; ++life) {
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == life; }));
        for (int i = 0; i < 100; ++i)
            ASSERT_TRUE(arrives());
        const TimePoint broken = bed.loop().now();
        bed.sim()->sever(bed.sim()->next_connection() - 1);
        ASSERT_TRUE(bed.run_until([&] { return sender.connected > life; }));
        EXPECT_LE(bed.loop().now() - broken, 2 * options().retry_interval) << life;
    }
}

TEST_P(ReconnectingSender, WaitsForAListenerThatIsNotThereYet) {
    listen();
    listener.reset();
    connect();
    ASSERT_TRUE(closed(3));
    EXPECT_TRUE(socket->is_retrying());
    listen_again();
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    EXPECT_TRUE(arrives());
}

TEST_P(ReconnectingSender, WaitsForASlot) {
    listen({.peer_limit = 1});
    Sender first;
    const std::unique_ptr<SendSocket> other = connected(first);
    connect();
    ASSERT_TRUE(closed(2));
    EXPECT_EQ(sender.closed.back().reason, CloseReason::rejected);
    EXPECT_TRUE(socket->is_retrying());
    other->close();
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
}

TEST_P(ReconnectingSender, AfterItsOwnEndNothingFollows) {
    using End = void (SendSocket::*)();
    for (const End end : {&SendSocket::close, &SendSocket::abort}) {
        sender = {};
        listen();
        connect();
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
        (socket.get()->*end)();
        ASSERT_TRUE(closed(1));
        EXPECT_FALSE(socket->is_retrying());
        socket->connect(address); // like the first time
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
        listener.reset();
        ASSERT_TRUE(closed(2));
        ASSERT_TRUE(socket->is_retrying());
        // The same between two attempts.
        (socket.get()->*end)();
        (socket.get()->*end)();
        EXPECT_FALSE(socket->is_retrying());
        ASSERT_TRUE(closed(3));
        EXPECT_EQ(sender.closed.back().reason, CloseReason::local);
        EXPECT_FALSE(socket->is_retrying());
    }
}

// A socket with its own time-out ends an attempt at the same time as the session does.
TEST_P(ReconnectingSenderInTime, ItsOwnEndIsFinalAlsoAfterAnUnreportedFailure) {
    using End = void (SendSocket::*)();
    listen();
    for (const bool reconnect : {true, false}) {
        for (const End end : {&SendSocket::close, &SendSocket::abort}) {
            sender = {};
            bed.sim()->network().ignore_connects(true);
            stream::test::TwoWays two_ways{bed.transport()};
            SendSocket::Options options{.reconnect = reconnect};
            options.session.connect_timeout = 50ms;
            socket = std::make_unique<SendSocket>(two_ways, options, sender);
            socket->connect(address);
            ASSERT_TRUE(bed.run_until([&] { return two_ways.attempts == 1; }));
            Timer last{bed.loop(), [&] {
                           bed.sim()->network().ignore_connects(false);
                           (socket.get()->*end)();
                       }};
            last.start(options.session.connect_timeout); // after the session's
            ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() || sender.connected; }));
            EXPECT_EQ(sender.connected, 0);
            EXPECT_EQ(two_ways.attempts, 1U);
            ASSERT_THAT(sender.closed, SizeIs(1));
            EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
            EXPECT_FALSE(socket->is_retrying());
            socket.reset();
        }
    }
}

TEST_P(ReconnectingSender, BetweenTwoAttemptsItMayConnectElsewhere) {
    listen();
    const Address gone = address;
    listener.reset();
    listen();
    socket = std::make_unique<SendSocket>(bed.transport(), options(), sender);
    sender.at_closed = [&] {
        EXPECT_TRUE(socket->is_retrying());
        socket->connect(address);
    };
    socket->connect(gone);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    EXPECT_TRUE(arrives());
}

TEST_P(ReconnectingSender, MayBeDestroyedWhileItWaits) {
    listen();
    listener.reset();
    connect();
    sender.at_closed = [&] { socket.reset(); };
    ASSERT_TRUE(closed(1));
    EXPECT_EQ(socket, nullptr);
}

// The listener stopped, and another process took its port before it returned.
TEST_P(ReconnectingSender, WithAKeyIsNotEndedByAnotherServerAtTheAddress) {
    KeyFiles files;
    files.permit(7, "services=messages");
    listen({.keys = keys_of(files)});
    SendSocket::Options with_key = options();
    with_key.retry_limit = with_key.retry_interval = 1ms; // so that it asks many times
    with_key.key = std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
    socket = std::make_unique<SendSocket>(bed.transport(), with_key, sender);
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    listener.reset();
    auto stranger = std::make_unique<Squatter>(bed.transport(), address, Service::messages);
    bool goes_on = true;
    sender.at_closed = [&] { goes_on = goes_on && socket->is_retrying(); };
    ASSERT_TRUE(bed.run_until([&] { return !goes_on || stranger->requests > Squatter::answers; }));
    ASSERT_TRUE(goes_on) << sender.closed.back().detail;
    sender.at_closed = {};
    EXPECT_TRUE(has_ended_with(CloseReason::rejected));
    EXPECT_TRUE(has_ended_with(CloseReason::not_admitted));
    EXPECT_TRUE(has_ended_with(CloseReason::protocol_error));
    stranger.reset();
    listen_again({.keys = keys_of(files)});
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    EXPECT_TRUE(arrives());
}

TEST_P(ReconnectingSender, WithAKeyThatWasNeverAdmittedGivesUp) {
    KeyFiles files;
    files.permit(7, "services=messages");
    listen({.keys = keys_of(files)});
    SendSocket::Options with_key = options();
    with_key.key = std::make_shared<ClientKey>(ClientKey::Options{.file = files.forged(7)});
    socket = std::make_unique<SendSocket>(bed.transport(), with_key, sender);
    socket->connect(address);
    ASSERT_TRUE(closed(1));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::rejected);
    EXPECT_FALSE(socket->is_retrying());
}

TEST_P(ReconnectingSender, WithPagesReconnectsAndReportsUnsentMessages) {
    listen();
    BufferedSender buffered;
    BufferedSendSocket pages{
        bed.transport(),
        {.socket = options(), .page_size_bytes = 1024, .page_count = 4, .flush_time = 0us},
        buffered};
    pages.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return buffered.connected == 1; }));
    const std::array<std::byte, 100> message{};
    ASSERT_EQ(pages.send(message), Status::ok); // it stays in its page
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return buffered.closed.size() == 1; }));
    EXPECT_TRUE(buffered.retrying);
    EXPECT_EQ(buffered.closed[0].unconfirmed_frames, 1U);
    listen_again();
    ASSERT_TRUE(bed.run_until([&] { return buffered.connected == 2; }));
    ASSERT_EQ(pages.send(message), Status::ok);
    pages.close();
    const std::size_t before = buffered.closed.size();
    ASSERT_TRUE(bed.run_until([&] { return buffered.closed.size() > before; }));
    EXPECT_EQ(buffered.closed.back().reason, CloseReason::orderly);
    EXPECT_FALSE(buffered.retrying);
    EXPECT_THAT(receiver.messages, SizeIs(1));
}

TEST_P(ReconnectingSenderInTime, WaitsLongerEachTimeUpToALimit) {
    listen();
    listener.reset();
    const TimePoint begin = bed.world()->now();
    connect();
    ASSERT_TRUE(closed(5));
    EXPECT_GE(bed.world()->now() - begin, 250ms + 500ms + 1s + 2s);
    ASSERT_TRUE(closed(10));
    EXPECT_LE(bed.world()->now() - begin, 10 * 6s);
    listen_again();
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    EXPECT_TRUE(arrives());
    // A receiver that was connected for a while is tried again soon.
    bool over = false;
    Timer timer{bed.loop(), [&] { over = true; }};
    timer.start(5s);
    ASSERT_TRUE(bed.run_until([&] { return over; }));
    listener.reset();
    const TimePoint lost = bed.world()->now();
    const std::size_t before = sender.closed.size();
    ASSERT_TRUE(closed(before + 2));
    EXPECT_LE(bed.world()->now() - lost, 1s);
}

TEST_P(ReconnectingSenderInTime, DoesNotRetryAfterAPermanentRefusal) {
    struct Nobody final : SessionListener::Handler {
        void on_incoming(IncomingSession&) override {}
        void on_accept_failed(const std::string&, const FabricError&) override {}
    } nobody;
    const SessionListener other{
        bed.transport(),
        {.service = Service::stream, .listen = {bed.address()}, .allow_remote_anonymous = true},
        nobody};
    address = other.endpoints().front().address;
    connect();
    ASSERT_TRUE(closed(1));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::rejected);
    EXPECT_FALSE(socket->is_retrying());
    bool over = false;
    Timer timer{bed.loop(), [&] { over = true; }};
    timer.start(30s);
    ASSERT_TRUE(bed.run_until([&] { return over; }));
    EXPECT_THAT(sender.closed, SizeIs(1));
}

} // namespace
} // namespace netio::test::reconnecting_test
