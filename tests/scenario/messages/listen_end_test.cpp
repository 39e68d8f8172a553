// SPDX-License-Identifier: Apache-2.0

// How a listen socket ends: exactly once, without accepting later senders, and with a reason that
// follows from its senders' ends. Also which senders it counts.

#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/scenario/pubsub/intruder.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace netio::test::listen_end_test {
namespace {

using namespace std::chrono_literals;
using netio::pubsub::test::Impostor;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Ending final : ListenSocket::Handler {
    void on_connected(ReceiveSocket& socket) override { sockets.push_back(&socket); }
    void on_message(ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {
        ++messages;
        if (at_message) at_message();
    }
    void on_closed(ReceiveSocket&, const Closed& why) override { closed.push_back(why); }
    void on_listen_closed(ListenSocket& listening, const Closed& why) override {
        EXPECT_EQ(listening.peer_count(), 0U);
        ends.push_back(why);
    }
    std::vector<ReceiveSocket*> sockets;
    std::vector<Closed> closed, ends;
    std::size_t messages = 0;
    std::function<void()> at_message;
};

class ListenEnd : public Messages {
  protected:
    using End = void (ListenSocket::*)();

    void listen(const SessionOptions& session = {}) {
        ending = {};
        listener = std::make_unique<ListenSocket>(
            bed.transport(),
            ListenSocket::Options{
                .listen = {bed.address()}, .allow_remote_anonymous = true, .session = session},
            ending);
        address = listener->endpoints().front().address;
    }
    // Connects this many senders and waits for all.
    void connect(std::size_t count) {
        senders.clear();
        sockets.clear();
        ends_here.clear();
        for (std::size_t i = 0; i < count; ++i) {
            ends_here.push_back(bed.sim()->next_connection() + 1); // follows the sender's number
            senders.push_back(std::make_unique<Sender>());
            sockets.push_back(connected(*senders.back()));
        }
        ASSERT_TRUE(bed.run_until([&] { return ending.sockets.size() == count; }));
    }
    bool has_ended() {
        return bed.run_until([&] { return !ending.ends.empty(); });
    }

    Ending ending;
    std::vector<std::unique_ptr<Sender>> senders;
    std::vector<std::unique_ptr<SendSocket>> sockets;
    std::vector<std::uint64_t> ends_here; // of their connections
};

INSTANTIATE_TEST_SUITE_P(Beds, ListenEnd, simulated_beds(), bed_name);

TEST_P(ListenEnd, IsReportedOnceHoweverOftenItIsRequested) {
    for (const std::size_t count : {0U, 2U}) {
        for (const End end : {&ListenSocket::close, &ListenSocket::abort}) {
            listen();
            connect(count);
            (listener.get()->*end)();
            (listener.get()->*end)();
            EXPECT_THAT(ending.ends, IsEmpty()) << "no callback within a call";
            ASSERT_TRUE(has_ended());
            listener->close();
            listener->abort();
            bed.let_pass(30s);
            ASSERT_THAT(ending.ends, SizeIs(1));
            EXPECT_EQ(ending.ends[0].reason,
                      end == &ListenSocket::close ? CloseReason::orderly : CloseReason::local);
            EXPECT_THAT(ending.closed, SizeIs(count));
        }
    }
}

TEST_P(ListenEnd, IsTheEndOfListening) {
    for (const End end : {&ListenSocket::close, &ListenSocket::abort}) {
        listen();
        connect(1);
        (listener.get()->*end)();
        EXPECT_THAT(listener->endpoints(), IsEmpty());
        Sender late;
        SendSocket other{bed.transport(), {}, late};
        other.connect(address);
        ASSERT_TRUE(bed.run_until([&] { return !late.closed.empty(); }));
        EXPECT_EQ(late.closed[0].reason, CloseReason::refused);
        ASSERT_TRUE(has_ended());
    }
}

TEST_P(ListenEnd, IsUnconfirmedWhereOneSenderDoesNotConfirmIt) {
    listen();
    connect(3);
    bed.sim()->cut(ends_here.back());
    listener->close();
    ASSERT_TRUE(has_ended());
    ASSERT_THAT(ending.closed, SizeIs(3));
    EXPECT_EQ(ending.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(ending.closed[1].reason, CloseReason::orderly);
    EXPECT_EQ(ending.closed[2].reason, CloseReason::unconfirmed);
    EXPECT_EQ(ending.ends[0].reason, CloseReason::unconfirmed);
    EXPECT_THAT(ending.ends[0].detail, HasSubstr("nothing more for 10000 ms"));
}

TEST_P(ListenEnd, AbortedIsLocalWhateverItsSendersDid) {
    listen();
    connect(2);
    bed.sim()->cut(ends_here.back());
    listener->close();
    bed.let_pass(1s);
    listener->abort();
    ASSERT_TRUE(has_ended());
    EXPECT_THAT(ending.closed, SizeIs(2));
    EXPECT_EQ(ending.ends[0].reason, CloseReason::local);
    EXPECT_EQ(ending.ends[0].detail, "");
}

// The peer completes the handshake of the network but never opens its session.
TEST_P(ListenEnd, IsOrderlyWhateverHappensToUnannouncedPeers) {
    listen();
    connect(1);
    const Impostor stranger{bed.transport(), address, Service::messages};
    ASSERT_TRUE(bed.run_until([&] { return stranger.connected && listener->peer_count() == 2; }));
    listener->close();
    ASSERT_TRUE(has_ended());
    ASSERT_THAT(ending.closed, SizeIs(1));
    EXPECT_EQ(ending.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(ending.ends[0].reason, CloseReason::orderly) << ending.ends[0].detail;
}

// Only the end itself could be held back, forever.
TEST_P(ListenEnd, ComesAlsoIfItsReceiversArePaused) {
    const std::array<std::function<void(ReceiveSocket&)>, 3> ways{
        [&](ReceiveSocket&) { listener->close(); }, [](ReceiveSocket& one) { one.close(); },
        [](ReceiveSocket& one) { one.abort(); }};
    for (const auto& end : ways) {
        listen();
        connect(1);
        const std::array<std::byte, 3> message{};
        ASSERT_EQ(sockets[0]->send_inline(message), Status::ok); // queued when the sender is gone
        end(*ending.sockets[0]);
        ending.sockets[0]->pause();
        ASSERT_TRUE(bed.run_until([&] { return !senders[0]->closed.empty(); }));
        ASSERT_TRUE(bed.run_until([&] { return !ending.closed.empty(); }));
        listener->close();
        ASSERT_TRUE(has_ended());
        EXPECT_EQ(ending.messages, 0U);
    }
}

// More senders than one turn of the loop closes: the remaining ones count as closed. All their
// messages have arrived when the first message is delivered, which is also the last.
TEST_P(ListenEnd, NoMessageIsDeliveredAfterItAlthoughItTakesSeveralTurns) {
    constexpr std::size_t count = 70;
    listen();
    connect(count);
    for (const std::uint64_t end : ends_here)
        bed.sim()->hold(end);
    const std::array<std::byte, 3> message{};
    for (const auto& socket : sockets)
        ASSERT_EQ(socket->send_inline(message), Status::ok);
    bed.let_pass(1s);
    ending.at_message = [&] { listener->close(); };
    for (const std::uint64_t end : ends_here)
        bed.sim()->release(end);
    ASSERT_TRUE(has_ended());
    EXPECT_EQ(ending.messages, 1U);
    ASSERT_TRUE(bed.run_until([&] {
        return std::ranges::none_of(senders, [](const auto& one) { return one->closed.empty(); });
    }));
    std::uint64_t unread = 0;
    for (const auto& one : senders)
        unread += one->closed[0].unconfirmed_frames;
    EXPECT_EQ(unread, count - 1) << "and their senders are notified";
}

// --- counted --------------------------------------------------------------------------------

TEST_P(ListenEnd, RejectionsForLackOfResourcesAreCountedSeparately) {
    listen();
    bed.sim()->refuse_endpoints(true);
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    bed.sim()->refuse_endpoints(false);
    EXPECT_EQ(listener->counters().accept_failed, 1U);
    EXPECT_EQ(listener->counters().rejected, 0U);
    EXPECT_EQ(listener->counters().connected, 0U);
}

// The peer completes the handshake of the network and then sends nothing.
TEST_P(ListenEnd, AnUnopenedSessionIsRejectedUnlessTheListenerEndsBefore) {
    for (const bool ends : {false, true}) {
        listen();
        Impostor impostor{bed.transport(), address, Service::messages};
        ASSERT_TRUE(bed.run_until([&] { return impostor.connected; }));
        if (ends) listener->abort();
        ASSERT_TRUE(bed.run_until([&] { return impostor.closed; }));
        bed.let_pass(1s);
        EXPECT_EQ(listener->counters().rejected, ends ? 0U : 1U);
        EXPECT_EQ(listener->counters().connected, 0U);
        EXPECT_THAT(ending.closed, IsEmpty()) << "it was never announced";
    }
}

} // namespace
} // namespace netio::test::listen_end_test
