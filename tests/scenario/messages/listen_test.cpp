// SPDX-License-Identifier: Apache-2.0

// What a receiver can do besides receiving: pause, count, stop listening, end.

#include "tests/scenario/messages/buffered_fixture.hpp"

#include <gmock/gmock.h>

namespace netio::test::listen_test {
namespace {

using Listening = BufferedMessages;

TEST_P(Listening, AReceiverPausedInsideAPageResumesWithTheNextMessage) {
    listen();
    connect(patient);
    receiver.at_message = [&](ReceiveSocket& peer) {
        peer.pause();
        if (receiver.messages.size() != 7) peer.resume();
    };
    for (unsigned i = 0; i < 20; ++i)
        ASSERT_EQ(send(content(30, i)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(7));
    for (int i = 0; i < 100; ++i)
        bed.loop().run_once();
    EXPECT_EQ(receiver.messages.size(), 7U);
    ASSERT_EQ(listener->peers().size(), 1U);
    listener->peers()[0]->resume();
    ASSERT_TRUE(arrived(20));
    for (unsigned i = 0; i < 20; ++i)
        EXPECT_EQ(receiver.messages[i].bytes, content(30, i));
    EXPECT_EQ(listener->counters().messages, 20U);
    EXPECT_EQ(listener->counters().bytes, 600U);
    EXPECT_EQ(listener->peers()[0]->counters().messages, 20U);
}

TEST_P(Listening, APausedReceiverBlocksItsSenderAndLosesNothing) {
    listen({.session = {.receive_count = 4}});
    receiver.at_connected = [](ReceiveSocket& peer) { peer.pause(); };
    connect(patient);
    unsigned sent = 0;
    sender.at_room = [&] {
        while (sent < 100 && send(content(900, sent)) == Status::ok)
            ++sent;
    };
    sender.at_room();
    ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
    for (int i = 0; i < 100; ++i)
        bed.loop().run_once();
    EXPECT_LT(sent, 20U);
    EXPECT_TRUE(receiver.messages.empty());
    listener->peers()[0]->resume();
    ASSERT_TRUE(bed.run_until([&] { return sent == 100; }));
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly) << sender.closed[0].detail;
    EXPECT_EQ(receiver.messages.size(), 100U);
}

TEST_P(Listening, AtTwoAddressesItServesTheSendersOfBoth) {
    const ListenSocket listening{
        bed.transport(),
        {.listen = {bed.address(), bed.address()}, .allow_remote_anonymous = true},
        receiver};
    ASSERT_EQ(listening.endpoints().size(), 2U);
    for (const auto& [provider, taken] : listening.endpoints()) {
        EXPECT_NE(taken.port, 0U);
        address = taken;
        sender = {};
        connect(patient);
        ASSERT_EQ(send(content(30, taken.port)), Status::ok);
        socket->flush();
        const std::size_t before = receiver.messages.size();
        ASSERT_TRUE(arrived(before + 1));
        EXPECT_EQ(receiver.messages.back().bytes, content(30, taken.port));
        socket.reset();
    }
    EXPECT_NE(listening.endpoints()[0].address.port, listening.endpoints()[1].address.port);
}

TEST_P(Listening, MayStopWhileTheSendersContinue) {
    listen();
    connect(patient);
    ASSERT_TRUE(bed.run_until([&] { return receiver.connected == 1; }));
    listener->stop_listening();
    EXPECT_TRUE(listener->endpoints().empty());
    ASSERT_EQ(send(content(30, 1)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(1));
    BufferedSender late;
    BufferedSendSocket other{bed.transport(), patient, late};
    other.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return !late.closed.empty(); }));
    EXPECT_EQ(late.closed[0].reason, CloseReason::refused);
}

TEST_P(Listening, ClosesEverySenderInOrderAndReportsTheEnd) {
    struct Ending final : ListenSocket::Handler {
        void on_message(ReceiveSocket&, std::span<const std::byte>,
                        std::optional<std::uint64_t>) override {}
        void on_closed(ReceiveSocket&, const Closed& why) override { closed.push_back(why); }
        void on_listen_closed(ListenSocket& listening, const Closed& why) override {
            EXPECT_EQ(listening.peer_count(), 0U);
            ends.push_back(why);
        }
        std::vector<Closed> closed, ends;
    };
    for (const bool orderly : {true, false}) {
        Ending ending;
        ListenSocket listening{
            bed.transport(), {.listen = {bed.address()}, .allow_remote_anonymous = true}, ending};
        address = listening.endpoints().front().address;
        sender = {};
        connect(patient);
        ASSERT_TRUE(bed.run_until([&] { return listening.counters().connected == 1; }));
        orderly ? listening.close() : listening.abort();
        EXPECT_TRUE(ending.ends.empty()) << "no callback within a call";
        ASSERT_TRUE(bed.run_until([&] { return !ending.ends.empty() && !sender.closed.empty(); }));
        EXPECT_EQ(ending.closed.size(), 1U);
        EXPECT_EQ(ending.ends[0].reason, orderly ? CloseReason::orderly : CloseReason::local);
        EXPECT_EQ(sender.closed[0].reason, orderly ? CloseReason::orderly : CloseReason::lost);
    }
}

TEST_P(Listening, WhereOtherMachinesReachItHasToBeMeant) {
    ListenSocket::Options options{.listen = {{.host = "0.0.0.0", .port = 0}}};
    EXPECT_THROW((ListenSocket{bed.transport(), options, receiver}), std::invalid_argument);
    options.allow_remote_anonymous = true;
    EXPECT_NO_THROW((ListenSocket{bed.transport(), options, receiver}));
}

INSTANTIATE_TEST_SUITE_P(Beds, Listening, all_beds(), bed_name);

} // namespace
} // namespace netio::test::listen_test
