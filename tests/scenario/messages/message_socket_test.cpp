// SPDX-License-Identifier: Apache-2.0

// Message sockets: messages in both directions over one connection, on every bed.

#include "netio/messages/message_socket.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/protected_bed.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace netio::test::message_socket_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<std::byte>;

// One side of a connection: records what its functions report.
struct Side {
    MessageSocket::Functions functions() {
        return {.on_connected =
                    [this] {
                        ++connected;
                        if (at_connected) at_connected();
                    },
                .on_message =
                    [this](const IncomingMessage& message) {
                        messages.emplace_back(message.bytes().begin(), message.bytes().end());
                        immediates.push_back(message.immediate());
                        if (at_message) at_message(message);
                    },
                .on_received =
                    [this](const MessageSocket::Received& received) {
                        slices.push_back(received);
                        if (at_received) at_received(received);
                    },
                .on_sent =
                    [this](Cookie cookie, Completion::Outcome outcome) {
                        ++completed[static_cast<std::uint64_t>(cookie)];
                        if (outcome == Completion::Outcome::done) ++done;
                        if (at_sent) at_sent();
                    },
                .on_writable =
                    [this] {
                        ++writable;
                        if (at_writable) at_writable();
                    },
                .on_peer_finished =
                    [this] {
                        ++peer_finished;
                        if (at_peer_finished) at_peer_finished();
                    },
                .on_closed =
                    [this](const Closed& why) {
                        closed.push_back(why);
                        if (at_closed) at_closed();
                    }};
    }

    int connected = 0;
    int peer_finished = 0;
    int writable = 0;
    std::size_t done = 0;
    std::map<std::uint64_t, int> completed;
    std::vector<Bytes> messages;
    std::vector<std::optional<std::uint64_t>> immediates;
    std::vector<MessageSocket::Received> slices;
    std::vector<Closed> closed;
    std::function<void()> at_connected, at_sent, at_writable, at_peer_finished, at_closed;
    std::function<void(const IncomingMessage&)> at_message;
    std::function<void(const MessageSocket::Received&)> at_received;
    std::unique_ptr<MessageSocket> socket;
};

class TwoWays {
  public:
    explicit TwoWays(Bed where, std::uint64_t seed = TestBed::default_seed()) : bed{where, seed} {}

    void listen(MessageSocket::Options accepted = {}, MessageListener::Options with = {}) {
        with.listen = {address.port != 0 ? address : bed.address()};
        with.allow_remote_anonymous = true;
        listener = std::make_unique<MessageListener>(
            bed.transport(), with, [this, accepted](IncomingPeer& peer) {
                far.socket = peer.accept(accepted, far.functions());
            });
        address = listener->endpoints().front().address;
    }
    void connect(MessageSocket::Options options = {}) {
        const int before = near.connected;
        near.socket = std::make_unique<MessageSocket>(bed.transport(), options, near.functions());
        near.socket->connect(address);
        ASSERT_TRUE(
            bed.run_until([&] { return near.connected > before && far.connected > before; }));
    }
    bool both_closed() {
        return bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); });
    }
    // Sends a copy as soon as it is accepted.
    void send(Side& from, const Bytes& message) {
        ASSERT_TRUE(bed.run_until([&] { return from.socket->send(message) == Status::ok; }));
    }

    TestBed bed;
    Address address;
    Side near, far;
    std::unique_ptr<MessageListener> listener;
};

class BothWays : public testing::TestWithParam<Bed> {
  protected:
    TwoWays pair{GetParam()};
    TestBed& bed = pair.bed;
    Side& near = pair.near;
    Side& far = pair.far;
};

INSTANTIATE_TEST_SUITE_P(Beds, BothWays, all_beds(), bed_name);

TEST_P(BothWays, MessagesOfEverySizeAndKindArriveInOrder) {
    pair.listen();
    pair.connect();
    const std::vector<std::size_t> sizes{0, 1, 8, 40, 8192, 60'000, 70'000, 500'000, 3};
    RegisteredBuffer memory{60'000};
    std::vector<Bytes> expected;
    std::uint64_t lent = 0;
    for (unsigned i = 0; i < 60; ++i) {
        const Bytes message = content(sizes[i % sizes.size()], i);
        for (Side* const side : {&near, &far}) {
            if (i % 3 != 0 || message.size() > memory.size()) {
                pair.send(*side, message);
                continue;
            }
            // Without a copy; the memory is free before its next use.
            std::ranges::copy(message, memory.data());
            const auto cookie = Cookie{++lent};
            const auto immediate = i % 2 == 0 ? std::optional<std::uint64_t>{i} : std::nullopt;
            const std::size_t before = side->done;
            ASSERT_TRUE(bed.run_until([&] {
                return side->socket->send(memory.slice(0, message.size()), cookie, immediate) ==
                       Status::ok;
            }));
            ASSERT_TRUE(bed.run_until([&] { return side->done > before; }));
        }
        expected.push_back(message);
    }
    ASSERT_TRUE(bed.run_until([&] {
        return near.messages.size() == expected.size() && far.messages.size() == expected.size();
    }));
    EXPECT_EQ(near.messages, expected);
    EXPECT_EQ(far.messages, expected);
    EXPECT_EQ(far.immediates[12], std::optional<std::uint64_t>{12});
    EXPECT_EQ(far.immediates[3], std::nullopt);
    EXPECT_EQ(near.socket->counters().messages_sent, expected.size());
    EXPECT_EQ(near.socket->counters().messages_received, expected.size());
}

TEST_P(BothWays, APartedMessageArrivesAsOneAndSmallOnesShareAPage) {
    pair.listen();
    pair.connect();
    const Bytes head = content(5, 1);
    const Bytes body = content(1000, 2);
    const std::array<std::span<const std::byte>, 2> parts{head, body};
    ASSERT_EQ(near.socket->send_parts(parts), Status::ok);
    for (unsigned i = 0; i < 100; ++i)
        ASSERT_EQ(near.socket->send(content(30, i)), Status::ok); // far fewer than 100 credits
    ASSERT_TRUE(bed.run_until([&] { return far.messages.size() == 101; }));
    Bytes whole = head;
    whole.insert(whole.end(), body.begin(), body.end());
    EXPECT_EQ(far.messages[0], whole);
    EXPECT_EQ(far.messages[100], content(30, 99));
}

TEST_P(BothWays, AMessageLargerThanAllPagesIsSentFromACopy) {
    pair.listen({.page_count = 2});
    pair.connect({.page_count = 2});
    const Bytes large = content(5'000'000, 1);
    for (Side* const side : {&near, &far}) {
        pair.send(*side, large);
        EXPECT_EQ(side->socket->send(large), Status::again); // one at a time
        pair.send(*side, content(10, 2));
    }
    ASSERT_TRUE(
        bed.run_until([&] { return near.messages.size() == 2 && far.messages.size() == 2; }));
    EXPECT_EQ(far.messages[0], large);
    EXPECT_EQ(near.messages[0], large);
    EXPECT_EQ(near.messages[1], content(10, 2));
    ASSERT_TRUE(bed.run_until([&] { return far.writable == 1; }));
}

TEST_P(BothWays, ASideThatHasFinishedStillReceivesUntilTheOtherEnds) {
    pair.listen();
    pair.connect();
    pair.send(near, content(100, 1));
    near.socket->finish();
    EXPECT_EQ(near.socket->send(content(1, 0)), Status::closed);
    ASSERT_TRUE(bed.run_until([&] { return far.peer_finished == 1; }));
    ASSERT_EQ(far.messages.size(), 1U);
    for (unsigned i = 0; i < 20; ++i)
        pair.send(far, content(50'000, i));
    far.socket->finish();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(near.messages.size(), 20U);
    EXPECT_EQ(near.peer_finished, 1);
    EXPECT_EQ(near.closed[0].reason, CloseReason::orderly) << near.closed[0].detail;
    EXPECT_EQ(far.closed[0].reason, CloseReason::orderly) << far.closed[0].detail;
}

TEST_P(BothWays, ClosingSendsWhatWasAcceptedAndDiscardsWhatArrives) {
    pair.listen({.session = {.receive_count = 4}});
    pair.connect();
    far.socket->pause();
    unsigned sent = 0;
    while (near.socket->send(content(30'000, sent)) == Status::ok)
        ++sent;
    near.socket->close();
    EXPECT_EQ(near.socket->send(content(1, 0)), Status::closed);
    far.socket->resume();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(near.closed[0].reason, CloseReason::orderly) << near.closed[0].detail;
    EXPECT_EQ(far.messages.size(), sent);
}

TEST_P(BothWays, ClosingWithUnreadMessagesIsUnconfirmedAtTheOtherSide) {
    pair.listen();
    pair.connect();
    near.socket->pause();
    pair.send(far, content(100, 1));
    ASSERT_TRUE(bed.run_until([&] { return far.socket->counters().messages_sent == 1; }));
    for (int i = 0; i < 50; ++i)
        bed.loop().run_once();
    near.socket->close();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_TRUE(near.messages.empty());
    EXPECT_EQ(far.closed[0].reason, CloseReason::unconfirmed) << far.closed[0].detail;
}

// The notification that the other side has finished is no message that its user has not received.
TEST_P(BothWays, ClosingWhileThePeerFinishesLeavesNothingUnread) {
    pair.listen();
    pair.connect();
    pair.send(far, content(100, 1));
    ASSERT_TRUE(bed.run_until([&] { return near.messages.size() == 1; }));
    far.socket->finish();
    near.socket->close();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(far.closed[0].reason, CloseReason::orderly) << far.closed[0].detail;
    EXPECT_EQ(near.closed[0].reason, CloseReason::orderly) << near.closed[0].detail;
}

TEST_P(BothWays, APausedReceiverBlocksItsPeerAndTheOtherDirectionGoesOn) {
    pair.listen({.session = {.receive_count = 4, .window_limit = 0}});
    pair.connect();
    far.socket->pause();
    unsigned sent = 0;
    while (sent < 500 && near.socket->send(content(60'000, sent)) == Status::ok)
        ++sent;
    ASSERT_LT(sent, 500U);
    for (unsigned i = 0; i < 100; ++i)
        pair.send(far, content(1000, i));
    ASSERT_TRUE(bed.run_until([&] { return near.messages.size() == 100; }));
    EXPECT_TRUE(far.messages.empty());
    EXPECT_LE(near.writable, 1); // the receive buffers of the peer took some pages
    far.socket->resume();
    ASSERT_TRUE(bed.run_until([&] { return far.messages.size() == sent && near.writable == 1; }));
}

// Its receives are full of messages that its user does not take, but for the credits of the peer.
TEST_P(BothWays, APausedSideGoesOnSending) {
    const SessionOptions few{.receive_count = 4, .window_limit = 0};
    pair.listen({.session = few});
    pair.connect({.session = few});
    far.socket->pause();
    unsigned sent = 0;
    for (unsigned answers = 0; answers < 200; ++answers) {
        while (sent < 500 && near.socket->send(content(60'000, sent)) == Status::ok)
            ++sent;
        pair.send(far, content(60'000, answers));
        ASSERT_TRUE(bed.run_until([&] { return near.messages.size() == answers + 1; }));
    }
    ASSERT_LT(sent, 500U);
    EXPECT_TRUE(far.messages.empty());
}

TEST_P(BothWays, AKeptMessageOutlivesTheSocketAndIsNotCopied) {
    pair.listen();
    pair.connect();
    std::vector<KeptBytes> kept;
    KeepStats lent;
    far.at_message = [&](const IncomingMessage& message) {
        kept.push_back(message.keep());
        lent = far.socket->kept();
    };
    for (const std::size_t size : {std::size_t{40}, std::size_t{60'000}, std::size_t{300'000}})
        pair.send(near, content(size, 9));
    ASSERT_TRUE(bed.run_until([&] { return kept.size() == 3; }));
    EXPECT_GE(lent.buffers, 3U);
    far.socket.reset();
    near.socket.reset();
    pair.listener.reset();
    EXPECT_TRUE(std::ranges::equal(kept[0].bytes(), content(40, 9)));
    EXPECT_TRUE(std::ranges::equal(kept[1].bytes(), content(60'000, 9)));
    EXPECT_TRUE(std::ranges::equal(kept[2].bytes(), content(300'000, 9)));
}

// --- received into posted memory ------------------------------------------------------------

TEST_P(BothWays, MessageKGoesIntoSliceKAndNoneIsTruncated) {
    pair.listen({.receive_into_posted = true});
    pair.connect();
    const std::vector<std::size_t> sizes{0, 40, 300'000, 10, 70'000};
    for (unsigned i = 0; i < sizes.size(); ++i)
        pair.send(near, content(sizes[i], i));
    for (int i = 0; i < 100; ++i)
        bed.loop().run_once();
    EXPECT_TRUE(far.slices.empty()); // the messages wait for slices
    std::deque<Bytes> memory;
    const auto post = [&](std::size_t bytes) {
        memory.emplace_back(bytes);
        ASSERT_EQ(far.socket->post_receive(memory.back(), Cookie{memory.size() - 1}), Status::ok);
    };
    post(5);
    post(50);
    post(1000); // too small for 300,000 bytes
    post(300'000);
    ASSERT_TRUE(bed.run_until([&] { return far.slices.size() == 4; }));
    EXPECT_EQ(far.slices[2].status, Status::too_large);
    EXPECT_EQ(far.slices[2].bytes, 300'000U);
    EXPECT_EQ(memory[2], Bytes(1000));
    EXPECT_EQ(memory[3], content(300'000, 2));
    near.socket->finish();
    post(10);
    post(70'000);
    ASSERT_TRUE(bed.run_until([&] { return far.peer_finished == 1; }));
    ASSERT_EQ(far.slices.size(), 6U);
    for (std::size_t i = 0; i < far.slices.size(); ++i)
        EXPECT_EQ(static_cast<std::size_t>(far.slices[i].cookie), i);
    EXPECT_EQ(memory[5], content(70'000, 4));
    EXPECT_EQ(far.socket->counters().copied, 5U);
    EXPECT_EQ(far.socket->counters().too_large, 1U);
    far.socket->close();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(near.closed[0].reason, CloseReason::orderly) << near.closed[0].detail;
}

// The peer decides how large its messages are: it must not keep the loop in one turn.
TEST_P(BothWays, SlicesThatAreTooSmallAgainAndAgainDoNotBlockTheLoop) {
    pair.listen({.receive_into_posted = true});
    std::array<std::byte, 100> memory{};
    std::size_t bytes = 10;
    const auto post = [&] {
        EXPECT_EQ(far.socket->post_receive(std::span{memory}.first(bytes), Cookie{1}), Status::ok);
    };
    far.at_connected = post;
    far.at_received = [&](const MessageSocket::Received&) { post(); };
    pair.connect();
    RegisteredBuffer message{100};
    std::ranges::copy(content(100, 3), message.data());
    for (const bool has_immediate : {false, true}) {
        bytes = 10;
        far.slices.clear();
        pair.send(near, content(100, 2));
        if (has_immediate) { // the slice from before is large enough
            ASSERT_TRUE(bed.run_until([&] { return far.slices.size() == 1; }));
            ASSERT_EQ(near.socket->send(message.slice(), Cookie{1}, 77), Status::ok);
        }
        ASSERT_TRUE(bed.run_until([&] { return far.slices.size() > 200; }));
        bytes = 100;
        const std::size_t first = far.slices.size();
        ASSERT_TRUE(bed.run_until([&] { return far.slices.back().status == Status::ok; }));
        EXPECT_LT(far.slices.size(), first + 10);
        EXPECT_EQ(far.slices.back().immediate.has_value(), has_immediate);
        EXPECT_TRUE(std::ranges::equal(memory, content(100, has_immediate ? 3 : 2)));
    }
}

TEST_P(BothWays, WithoutASliceThePeerIsBlocked) {
    pair.listen({.session = {.receive_count = 4, .window_limit = 0}, .receive_into_posted = true});
    pair.connect();
    unsigned sent = 0;
    near.at_writable = [&] {
        while (sent < 300 && near.socket->send(content(20'000, sent)) == Status::ok)
            ++sent;
    };
    near.at_writable();
    for (int i = 0; i < 200; ++i)
        bed.loop().run_once();
    ASSERT_LT(sent, 300U);
    std::vector<Bytes> memory(8, Bytes(20'000));
    unsigned received = 0;
    far.at_received = [&](const MessageSocket::Received& slice) {
        const auto at = static_cast<std::size_t>(slice.cookie);
        ASSERT_EQ(memory[at], content(20'000, received++));
        static_cast<void>(far.socket->post_receive(memory[at], slice.cookie));
    };
    for (std::size_t i = 0; i < memory.size(); ++i)
        ASSERT_EQ(far.socket->post_receive(memory[i], Cookie{i}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return received == 300; }));
    EXPECT_EQ(far.socket->posted_count(), memory.size());
}

TEST_P(BothWays, PostedSlicesAreLimitedAndFreeAfterTheEnd) {
    pair.listen({.receive_into_posted = true, .posted_limit = 2});
    pair.connect();
    Bytes memory(10);
    ASSERT_EQ(far.socket->post_receive(memory, Cookie{1}), Status::ok);
    ASSERT_EQ(far.socket->post_receive(memory, Cookie{2}), Status::ok);
    EXPECT_EQ(far.socket->post_receive(memory, Cookie{3}), Status::again);
    near.socket->abort();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(far.socket->posted_count(), 0U);
    EXPECT_EQ(near.closed[0].reason, CloseReason::local);
}

TEST_P(BothWays, AnEmptyMessageWithoutACopyWaitsForASlice) {
    pair.listen({.receive_into_posted = true});
    pair.connect();
    RegisteredBuffer memory{1};
    ASSERT_EQ(near.socket->send(memory.slice(0, 0), Cookie{1}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return near.done == 1; }));
    for (int i = 0; i < 50; ++i)
        bed.loop().run_once();
    EXPECT_TRUE(far.slices.empty());
    ASSERT_EQ(far.socket->post_receive({}, Cookie{2}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return far.slices.size() == 1; }));
    EXPECT_EQ(far.slices[0].status, Status::ok);
    EXPECT_EQ(far.slices[0].bytes, 0U);
}

TEST_P(BothWays, SlicesThatWaitForAConnectionAreFreeAfterAFailedAttempt) {
    pair.listen();
    near.socket = std::make_unique<MessageSocket>(
        bed.transport(), MessageSocket::Options{.reconnect = true, .receive_into_posted = true},
        near.functions());
    Bytes memory(10);
    ASSERT_EQ(near.socket->post_receive(memory, Cookie{1}), Status::ok);
    near.socket->connect(pair.address);
    near.socket->close(); // before it has a route
    ASSERT_TRUE(bed.run_until([&] { return near.closed.size() == 1; }));
    EXPECT_EQ(near.socket->posted_count(), 0U);
    // Those of the next attempt receive.
    ASSERT_EQ(near.socket->post_receive(memory, Cookie{2}), Status::ok);
    near.socket->connect(pair.address);
    ASSERT_TRUE(bed.run_until([&] { return far.connected == 1; }));
    pair.send(far, content(10, 5));
    ASSERT_TRUE(bed.run_until([&] { return near.slices.size() == 1; }));
    EXPECT_EQ(near.slices[0].cookie, Cookie{2});
    EXPECT_EQ(memory, content(10, 5));
}

// --- ends and refusals ----------------------------------------------------------------------

TEST_P(BothWays, EverySendWithoutACopyCompletesOnceWhenThePeerIsGone) {
    pair.listen({.session = {.receive_count = 4, .window_limit = 0}});
    pair.connect();
    far.socket->pause();
    RegisteredBuffer memory{1000};
    std::uint64_t accepted = 0;
    while (near.socket->send(memory.slice(), Cookie{accepted}) == Status::ok)
        ++accepted;
    ASSERT_GT(accepted, 0U);
    far.socket.reset();
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_EQ(near.completed.size(), accepted);
    for (const auto& [cookie, times] : near.completed)
        EXPECT_EQ(times, 1) << cookie;
}

TEST_P(BothWays, ASocketMayBeDestroyedInEachOfItsFunctions) {
    for (int in = 0; in < 6; ++in) {
        SCOPED_TRACE(in);
        near = {};
        far = {};
        pair.address = {};
        pair.listen();
        pair.connect();
        Side& dying = far;
        bool destroyed = false;
        const auto destroy = [&] {
            destroyed = true;
            dying.socket.reset();
        };
        if (in == 0) dying.at_message = [&](const IncomingMessage&) { destroy(); };
        if (in == 1) dying.at_sent = destroy;
        if (in == 2) dying.at_peer_finished = destroy;
        if (in == 3) dying.at_closed = destroy;
        if (in == 4) dying.at_writable = destroy;
        RegisteredBuffer memory{40'000};
        if (in == 1) {
            ASSERT_EQ(far.socket->send(memory.slice(), Cookie{1}), Status::ok);
        }
        if (in == 4) {
            while (far.socket->send(content(40'000, 0)) == Status::ok) {
            }
        }
        if (in == 5) {
            near.socket.reset();
            destroy();
        } else if (in != 4) {
            for (unsigned i = 0; i < 3; ++i)
                pair.send(near, content(100, i));
            near.socket->finish();
            if (in == 3) near.socket->abort();
        }
        ASSERT_TRUE(bed.run_until([&] { return destroyed; }));
        pair.listener.reset();
        near.socket.reset();
        bed.loop().run_once();
    }
}

TEST_P(BothWays, ReconnectsAfterALostConnectionAndStaysPaused) {
    pair.listen();
    MessageSocket::Options options{.reconnect = true};
    if (bed.sim() == nullptr) options.retry_interval = 1ms;
    pair.connect(options);
    near.socket->pause();
    far.socket.reset();
    ASSERT_TRUE(bed.run_until([&] { return near.connected == 2 && far.connected == 2; }));
    EXPECT_EQ(near.closed.size(), 1U);
    pair.send(far, content(10, 1));
    for (int i = 0; i < 50; ++i)
        bed.loop().run_once();
    EXPECT_TRUE(near.messages.empty());
    near.socket->resume();
    ASSERT_TRUE(bed.run_until([&] { return near.messages.size() == 1; }));
    pair.listener.reset();
    far.socket.reset();
    ASSERT_TRUE(bed.run_until([&] { return near.closed.size() >= 2; }));
    near.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !near.socket->is_retrying(); }));
    ASSERT_TRUE(bed.run_until([&] { return near.closed.back().reason == CloseReason::local; }));
}

TEST_P(BothWays, ASocketThatHasFinishedDoesNotReconnect) {
    pair.listen();
    pair.connect({.reconnect = true});
    near.socket->finish();
    far.socket->finish();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(near.closed[0].reason, CloseReason::orderly) << near.closed[0].detail;
    EXPECT_FALSE(near.socket->is_retrying());
}

TEST_P(BothWays, AListenSocketAndAMessageSocketRefuseEachOther) {
    Receiver receiver;
    const ListenSocket one_way{
        bed.transport(), {.listen = {bed.address()}, .allow_remote_anonymous = true}, receiver};
    near.socket = std::make_unique<MessageSocket>(bed.transport(), MessageSocket::Options{},
                                                  near.functions());
    near.socket->connect(one_way.endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return near.closed.size() == 1; }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::rejected);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("connects to a MessageListener"));
    EXPECT_EQ(receiver.connected, 0U);

    pair.listen();
    Sender sender;
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(pair.address);
    ASSERT_TRUE(bed.run_until([&] { return sender.closed.size() == 1; }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::rejected);
    EXPECT_THAT(sender.closed[0].detail, HasSubstr("connect a MessageSocket"));
    EXPECT_THAT(sender.closed[0].detail, Not(HasSubstr("update"))) << "no update would help";
}

TEST_P(BothWays, APeerOfAnotherProtocolIsRejected) {
    pair.listen({}, {.protocol = 2});
    near.socket = std::make_unique<MessageSocket>(
        bed.transport(), MessageSocket::Options{.protocol = 1}, near.functions());
    near.socket->connect(pair.address);
    ASSERT_TRUE(bed.run_until([&] { return near.closed.size() == 1; }));
    EXPECT_THAT(near.closed[0].detail, HasSubstr("of the same protocol"));
    pair.connect({.protocol = 2});
}

TEST_P(BothWays, AFullListenerIsAskedAgainUntilThereIsAPlace) {
    pair.listen({}, {.peer_limit = 1});
    pair.connect();
    Side late;
    MessageSocket::Options options{.reconnect = true};
    options.retry_interval = options.retry_limit = std::chrono::milliseconds{10};
    late.socket = std::make_unique<MessageSocket>(bed.transport(), options, late.functions());
    late.socket->connect(pair.address);
    ASSERT_TRUE(bed.run_until([&] { return !late.closed.empty(); }));
    EXPECT_EQ(late.closed[0].reason, CloseReason::rejected);
    EXPECT_TRUE(late.socket->is_retrying());
    near.socket->close();
    EXPECT_TRUE(bed.run_until([&] { return late.connected == 1; }));
}

TEST_P(BothWays, MessagesThatThePeerDoesNotAcceptAreRefusedAtOnce) {
    pair.listen({.largest_message_bytes = 100'000});
    pair.connect();
    EXPECT_EQ(near.socket->message_limit(), 100'000U);
    EXPECT_EQ(near.socket->send(content(100'001, 0)), Status::too_large);
    RegisteredBuffer memory{near.socket->frame_limit() + 1};
    EXPECT_EQ(near.socket->send(memory.slice(), Cookie{1}), Status::too_large);
    ASSERT_EQ(near.socket->send(memory.slice(0, near.socket->frame_limit()), Cookie{2}, 7),
              Status::ok);
    pair.send(near, content(100'000, 3));
    ASSERT_TRUE(bed.run_until([&] { return far.messages.size() == 2; }));
    EXPECT_EQ(far.messages[1], content(100'000, 3));
}

TEST(MessageSocketOptions, AreCheckedWithTheirNames) {
    TestBed bed{Bed::sim_tcp};
    const auto refusal = [&](const MessageSocket::Options& options) -> std::string {
        try {
            const MessageSocket socket{bed.transport(), options, {}};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_THAT(refusal({.largest_message_bytes = 0}), HasSubstr("largest_message_bytes is 0"));
    EXPECT_THAT(refusal({.page_size_bytes = 255}), HasSubstr("page_size_bytes"));
    EXPECT_THAT(refusal({.page_count = 1}), HasSubstr("page_count"));
    EXPECT_THAT(refusal({.posted_limit = 0}), HasSubstr("posted_limit"));
    EXPECT_THAT(refusal({.protocol = 4}), HasSubstr("protocol is 4"));
    const MessageListener::Options unknown{.listen = {bed.address()}, .protocol = 4};
    EXPECT_THROW(MessageListener(bed.transport(), unknown, {}), std::invalid_argument);
}

// --- protection -----------------------------------------------------------------------------

class SimulatedBothWays : public BothWays {};

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedBothWays, simulated_beds(), bed_name);

TEST_P(SimulatedBothWays, FinishCountsBeforeALostConnectionIsReported) {
    pair.listen();
    pair.connect({.reconnect = true});
    near.socket->pause();
    pair.send(far, content(10, 1));
    far.socket->flush();
    bed.let_pass(50ms); // the message waits at the paused side
    far.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return !near.socket->is_connected(); }));
    ASSERT_TRUE(near.closed.empty());
    near.socket->finish();
    near.socket->resume();
    ASSERT_TRUE(bed.run_until([&] { return near.closed.size() == 1; }));
    EXPECT_EQ(near.messages.size(), 1U);
    EXPECT_FALSE(near.socket->is_retrying());
}

class ProtectedBothWays : public testing::TestWithParam<ProtectedBed> {};

INSTANTIATE_TEST_SUITE_P(Beds, ProtectedBothWays, all_protected_beds(), protected_bed_name);

TEST_P(ProtectedBothWays, MessagesArriveAndBothSidesEndInOrder) {
    TwoWays pair{std::get<0>(GetParam())};
    AgreedKeys keys{pair.bed.loop(), std::get<1>(GetParam())};
    MessageListener::Options with;
    with.keys = keys.server();
    pair.listen({.session = {.rekey_after_bytes = 50'000}}, with);
    pair.connect({.session = {.rekey_after_bytes = 50'000}, .key = keys.client()});
    std::vector<Bytes> expected;
    for (unsigned i = 0; i < 30; ++i) {
        expected.push_back(content(i % 5 == 0 ? 100'000 : 700, i));
        pair.send(pair.near, expected.back());
        pair.send(pair.far, expected.back());
    }
    pair.near.socket->finish();
    pair.far.socket->finish();
    ASSERT_TRUE(pair.both_closed());
    EXPECT_EQ(pair.near.messages, expected);
    EXPECT_EQ(pair.far.messages, expected);
    EXPECT_EQ(pair.near.closed[0].reason, CloseReason::orderly) << pair.near.closed[0].detail;
    EXPECT_EQ(pair.far.closed[0].reason, CloseReason::orderly) << pair.far.closed[0].detail;
}

// --- against a model ------------------------------------------------------------------------

// Both sides send at random, by copy and without; keep, pause, and post slices. Each side receives
// every message that the other side's socket accepted, in order. Then both sides finish.
class RandomBothWays : public testing::TestWithParam<Bed> {};

INSTANTIATE_TEST_SUITE_P(Beds, RandomBothWays, simulated_beds(), bed_name);

struct RandomSide {
    std::deque<Bytes> expected; // accepted at the other side and not received
    std::deque<std::unique_ptr<RegisteredBuffer>> lent;
    std::deque<std::pair<Bytes, KeptBytes>> kept;
    std::deque<Bytes> memory; // posted slices, in order
    bool posts = false;
    std::size_t wrong = 0;
    Side side;

    void take(std::span<const std::byte> bytes) {
        if (expected.empty() || !std::ranges::equal(expected.front(), bytes)) ++wrong;
        if (!expected.empty()) expected.pop_front();
    }
    void post(std::size_t bytes) {
        memory.emplace_back(bytes);
        if (side.socket->post_receive(memory.back(), Cookie{}) != Status::ok) memory.pop_back();
    }
    void release_one() {
        if (kept.empty()) return;
        if (!std::ranges::equal(kept.front().first, kept.front().second.bytes())) ++wrong;
        kept.pop_front();
    }
};

class RandomPair {
  public:
    RandomPair(Bed where, std::uint64_t seed) : bed{where, seed}, dice_{seed} {
        for (RandomSide& each : sides) {
            each.posts = below(2) == 0;
            watch(each);
        }
        listener_.emplace(
            bed.transport(),
            MessageListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
            [this, with = options(sides[1])](IncomingPeer& peer) {
                sides[1].side.socket = peer.accept(with, sides[1].side.functions());
            });
        sides[0].side.socket = std::make_unique<MessageSocket>(bed.transport(), options(sides[0]),
                                                               sides[0].side.functions());
        sides[0].side.socket->connect(listener_->endpoints().front().address);
    }
    bool is_connected() const {
        return sides[0].side.connected == 1 && sides[1].side.connected == 1;
    }
    void act() {
        const std::size_t at = below(2);
        RandomSide& from = sides[at];
        RandomSide& to = sides[1 - at];
        const Bytes message =
            content(below(3) == 0 ? below(20'000) : below(100), static_cast<unsigned>(below(1000)));
        switch (below(8)) {
        case 0:
        case 1:
        case 2:
            return copy(from, to, message);
        case 3:
            return copy(from, to, content(below(200'000), 1));
        case 4:
            return lend(from, to, message);
        case 5:
            if (from.posts) from.post(below(30'000));
            return from.side.socket->resume();
        case 6:
            return from.release_one();
        default:
            bed.loop().run_once();
        }
    }
    // Everything may be received; both sides have finished.
    bool have_closed() {
        for (RandomSide& each : sides) {
            each.kept.clear();
            if (each.posts && each.side.socket->posted_count() == 0) each.post(200'000);
            each.side.socket->resume();
        }
        return !sides[0].side.closed.empty() && !sides[1].side.closed.empty();
    }

    TestBed bed;
    std::array<RandomSide, 2> sides;

  private:
    std::uint64_t below(std::uint64_t end) { return dice_() % end; }
    MessageSocket::Options options(const RandomSide& of) {
        MessageSocket::Options made;
        made.session.receive_count = 4 + below(8);
        made.session.send_count = 4 + below(8);
        made.session.keep_limit_bytes = below(2) * 300'000;
        made.page_size_bytes = 256 + below(70'000);
        made.page_count = 8 + below(8);
        made.largest_message_bytes = 200'000;
        made.receive_into_posted = of.posts;
        return made;
    }
    void watch(RandomSide& each) {
        each.side.at_message = [this, &each](const IncomingMessage& message) {
            each.take(message.bytes());
            if (below(4) == 0)
                each.kept.emplace_back(Bytes(message.bytes().begin(), message.bytes().end()),
                                       message.keep());
            if (below(8) == 0) each.side.socket->pause();
        };
        each.side.at_received = [this, &each](const MessageSocket::Received& slice) {
            if (slice.status == Status::ok)
                each.take(std::span{each.memory.front()}.first(slice.bytes));
            each.memory.pop_front();
            if (slice.status == Status::too_large) each.post(slice.bytes + below(3));
        };
    }
    static void copy(RandomSide& from, RandomSide& to, const Bytes& message) {
        if (from.side.socket->send(message) == Status::ok) to.expected.push_back(message);
    }
    void lend(RandomSide& from, RandomSide& to, const Bytes& message) {
        auto memory = std::make_unique<RegisteredBuffer>(message.size() + 1);
        std::ranges::copy(message, memory->data());
        const auto cookie = Cookie{++cookies_};
        if (from.side.socket->send(memory->slice(0, message.size()), cookie) != Status::ok) return;
        to.expected.push_back(message);
        from.lent.push_back(std::move(memory));
    }

    std::mt19937_64 dice_;
    std::uint64_t cookies_ = 0;
    std::optional<MessageListener> listener_;
};

TEST_P(RandomBothWays, EverythingAcceptedArrivesInOrder) {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
        SCOPED_TRACE(seed);
        RandomPair pair{GetParam(), seed};
        ASSERT_TRUE(pair.bed.run_until([&] { return pair.is_connected(); }));
        for (int step = 0; step < 600; ++step)
            pair.act();
        for (RandomSide& each : pair.sides)
            each.side.socket->finish();
        ASSERT_TRUE(pair.bed.run_until([&] { return pair.have_closed(); }));
        for (const RandomSide& each : pair.sides) {
            EXPECT_EQ(each.wrong, 0U);
            EXPECT_TRUE(each.expected.empty()) << each.expected.size();
            EXPECT_EQ(each.side.closed[0].reason, CloseReason::orderly)
                << each.side.closed[0].detail;
            EXPECT_EQ(each.side.completed.size(), each.lent.size());
        }
    }
}

} // namespace
} // namespace netio::test::message_socket_test
