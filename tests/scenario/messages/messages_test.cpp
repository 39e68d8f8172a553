// SPDX-License-Identifier: Apache-2.0

// Point to point: send sockets, a listen socket, and their callbacks.

#include "tests/scenario/messages/messages_fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <set>

namespace netio::test::messages_test {
namespace {

using testing::HasSubstr;

TEST_P(Messages, OfEverySizeArriveWholeInOrderWithTheirKeysAndImmediateData) {
    listen({.session = {.receive_buffer_bytes = 70000}});
    const auto socket = connected(sender);
    EXPECT_GE(socket->message_limit(), 69000U);
    const std::vector<std::size_t> sizes{0,    1,     47,    48,    49,    56, 57,
                                         1000, 65535, 65536, 69000, 12345, 3,  0};
    std::vector<std::unique_ptr<RegisteredBuffer>> memory;
    for (unsigned i = 0; i < sizes.size(); ++i) {
        memory.push_back(std::make_unique<RegisteredBuffer>(std::max<std::size_t>(sizes[i], 1)));
        std::ranges::copy(content(sizes[i], i), memory.back()->data());
        std::optional<std::uint64_t> immediate;
        if (i % 2 == 1) immediate = 0xfedcba9876543210 + i;
        ASSERT_TRUE(bed.run_until([&] {
            return socket->send(memory.back()->slice(0, sizes[i]), Cookie{i}, immediate) ==
                   Status::ok;
        }));
    }
    ASSERT_TRUE(bed.run_until(
        [&] { return receiver.messages.size() == sizes.size() && sender.done == sizes.size(); }));
    for (unsigned i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(receiver.messages[i].bytes, content(sizes[i], i)) << i;
        EXPECT_EQ(receiver.messages[i].immediate.has_value(), i % 2 == 1);
        if (i % 2 == 1) {
            EXPECT_EQ(*receiver.messages[i].immediate, 0xfedcba9876543210 + i);
        }
        EXPECT_EQ(sender.completions[i], 1);
    }
}

// Another thread may be inside a C library function that must not be patched: libfabric would do
// this to monitor memory.
TEST_P(Messages, LeaveTheCLibraryAsItIs) {
    const auto code = [] {
        std::array<std::byte, 16> bytes{};
        void* const library = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
        std::memcpy(bytes.data(), ::dlsym(library, "munmap"), bytes.size());
        ::dlclose(library);
        return bytes;
    };
    const auto before = code();
    listen();
    const auto socket = connected(sender);
    EXPECT_EQ(code(), before);
}

// With iWARP the error of a refused attempt does not identify the attempt.
TEST_P(Messages, ARefusalIsReportedToTheRefusedSocketOnly) {
    listen();
    ListenSocket::Options at_all{.listen = {bed.address()}, .allow_remote_anonymous = true};
    auto gone = std::make_unique<ListenSocket>(bed.transport(), at_all, receiver);
    const Address nowhere = gone->endpoints().front().address;
    gone.reset();
    for (int round = 0; round < 10; ++round) {
        std::array<Sender, 2> refused;
        Sender good;
        SendSocket::Options options;
        options.session.connect_timeout = std::chrono::minutes{10};
        SendSocket one{bed.transport(), options, refused[0]};
        SendSocket two{bed.transport(), options, good};
        SendSocket three{bed.transport(), options, refused[1]};
        one.connect(nowhere);
        two.connect(address);
        three.connect(nowhere);
        ASSERT_TRUE(bed.run_until([&] {
            return good.connected == 1 && refused[0].closed.size() == 1 &&
                   refused[1].closed.size() == 1;
        })) << round;
        EXPECT_TRUE(good.closed.empty());
        EXPECT_EQ(refused[0].closed[0].reason, CloseReason::refused);
        EXPECT_EQ(refused[1].closed[0].reason, CloseReason::refused);
    }
}

TEST_P(Messages, SentInlineNeedNoRegisteredMemoryAndBorrowNone) {
    listen();
    std::vector<std::byte> bytes(SendSocket::inline_limit + 1);
    {
        SendSocket nowhere{bed.transport(), {}, sender};
        EXPECT_EQ(nowhere.send_inline({}), Status::closed);
    }
    const auto socket = connected(sender);
    EXPECT_EQ(socket->send_inline(bytes), Status::too_large);
    for (std::size_t size = 0; size <= SendSocket::inline_limit; ++size) {
        const bool immediate = size % 3 == 0;
        std::ranges::copy(content(size, 5), bytes.begin());
        ASSERT_TRUE(bed.run_until([&] {
            const Status status =
                socket->send_inline(std::span{bytes}.first(size),
                                    immediate ? std::optional{UINT64_MAX - size} : std::nullopt);
            return status == Status::ok;
        }));
        std::ranges::fill(bytes, std::byte{0xee}); // the bytes are not used any more
    }
    ASSERT_TRUE(
        bed.run_until([&] { return receiver.messages.size() == SendSocket::inline_limit + 1; }));
    for (std::size_t size = 0; size <= SendSocket::inline_limit; ++size) {
        const Receiver::Message& message = receiver.messages[size];
        EXPECT_EQ(message.bytes, content(size, 5));
        EXPECT_EQ(message.immediate,
                  size % 3 == 0 ? std::optional{UINT64_MAX - size} : std::nullopt);
    }
    EXPECT_TRUE(sender.completions.empty());
}

TEST_P(Messages, OfSeveralBuffersArriveAsOne) {
    listen();
    const auto socket = connected(sender);
    RegisteredBuffer one{1000};
    RegisteredBuffer two{1000};
    std::ranges::copy(content(1000, 1), one.data());
    std::ranges::copy(content(1000, 2), two.data());
    for (std::size_t count = 0; count <= SendSocket::slice_limit; ++count) {
        std::vector<Slice> slices;
        std::vector<std::byte> expected;
        for (std::size_t i = 0; i < count; ++i) {
            slices.push_back((i % 2 == 0 ? one : two).slice(i * 30, i * 3));
            expected.insert(expected.end(), slices.back().data,
                            slices.back().data + slices.back().size);
        }
        const auto immediate = count % 3 == 0 ? std::optional{UINT64_MAX - count} : std::nullopt;
        ASSERT_TRUE(bed.run_until(
            [&] { return socket->sendv(slices, Cookie{count}, immediate) == Status::ok; }));
        ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == count + 1; }));
        EXPECT_EQ(receiver.messages.back().bytes, expected) << count << " slices";
        EXPECT_EQ(receiver.messages.back().immediate, immediate) << count << " slices";
    }
    const std::vector<Slice> too_many(SendSocket::slice_limit + 1, one.slice(0, 1));
    EXPECT_EQ(socket->sendv(too_many, Cookie{1}), Status::too_many_segments);
}

TEST_P(Messages, TooLargeForTheReceiverAreRefusedAtOnce) {
    listen({.session = {.receive_buffer_bytes = 1000}});
    const auto socket = connected(sender);
    RegisteredBuffer memory{2000};
    EXPECT_EQ(socket->send(memory.slice(0, socket->message_limit()), Cookie{1}, 5), Status::ok);
    EXPECT_EQ(socket->send(memory.slice(0, 1001), Cookie{2}), Status::too_large);
    ASSERT_TRUE(bed.run_until([&] { return sender.done == 1; }));
    EXPECT_FALSE(sender.completions.contains(2));
}

TEST_P(Messages, OutstandingSendsAreBoundedAndOnWritableFollows) {
    listen();
    const auto socket = connected(sender);
    RegisteredBuffer memory{1000};
    std::uint64_t sent = 0;
    bool refused = false;
    sender.at_room = [&] {
        for (; sent < 5000; ++sent) {
            if (socket->send(memory.slice(), Cookie{sent}) == Status::ok) continue;
            refused = true;
            return;
        }
    };
    sender.at_room();
    EXPECT_TRUE(refused);
    EXPECT_LE(sent, SendSocket::Options{}.session.send_count);
    ASSERT_TRUE(bed.run_until([&] { return sender.done == 5000; }));
    ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == 5000; }));
}

TEST_P(Messages, SentMessagesArriveBeforeTheDisconnect) {
    listen();
    auto socket = connected(sender);
    RegisteredBuffer memory{30000};
    for (std::uint64_t i = 0; i < 20; ++i)
        ASSERT_EQ(socket->send(memory.slice(), Cookie{i}), Status::ok);
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages.size(), 20U);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly);
    // It may connect again.
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 2; }));
    EXPECT_EQ(listener->peer_count(), 1U);
}

TEST_P(Messages, ARefusedConnectNamesTheAddressAndTheReason) {
    listen();
    listener.reset();
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(address);
    EXPECT_TRUE(sender.closed.empty()) << "no callback within a call";
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::refused);
    EXPECT_THAT(sender.closed[0].detail, HasSubstr(to_string(address)));
    EXPECT_THAT(sender.closed[0].detail, HasSubstr("refused"));
    RegisteredBuffer memory{10};
    EXPECT_EQ(socket.send(memory.slice(), Cookie{1}), Status::closed);
}

TEST_P(Messages, AnAddressInUseIsNamed) {
    listen();
    try {
        const ListenSocket second{
            bed.transport(), {.listen = {address}, .allow_remote_anonymous = true}, receiver};
        FAIL() << "two listeners at one address";
    } catch (const FabricError& error) {
        EXPECT_THAT(error.what(), HasSubstr(to_string(address)));
        EXPECT_EQ(error.code(), std::errc::address_in_use);
    }
}

TEST_P(Messages, ADuplicateAddressInTheListIsReportedAsSuch) {
    listen();
    listener.reset();
    try {
        const ListenSocket twice{bed.transport(),
                                 {.listen = {address, address}, .allow_remote_anonymous = true},
                                 receiver};
        FAIL() << "two listeners at one address";
    } catch (const FabricError& error) {
        EXPECT_THAT(error.what(), HasSubstr("together with " + to_string(address)));
        EXPECT_EQ(error.code(), std::errc::address_in_use);
    }
}

// The process that uses the address is not in the list, although the list has its port at another
// address.
TEST_P(Messages, AnAddressThatAnotherProcessHasIsNotBlamedOnTheList) {
    if (GetParam() == netio::test::Bed::fabric_verbs)
        GTEST_SKIP() << "needs a device with two addresses; 127.0.0.0/8 on fabric_tcp has them";
    listen();
    const Address elsewhere{.host = "127.0.0.2", .port = address.port};
    try {
        const ListenSocket second{bed.transport(),
                                  {.listen = {elsewhere, address}, .allow_remote_anonymous = true},
                                  receiver};
        FAIL() << "two listeners at one address";
    } catch (const FabricError& error) {
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("together with")));
        EXPECT_EQ(error.code(), std::errc::address_in_use);
    }
}

TEST_P(Messages, APeerBeyondTheLimitIsRejected) {
    listen({.peer_limit = 1});
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return !late.closed.empty(); }));
    EXPECT_EQ(late.closed[0].reason, CloseReason::rejected);
    EXPECT_THAT(late.closed[0].detail, HasSubstr("no free slot"));
}

TEST_P(Messages, OneHostDoesNotUseEverySlot) {
    listen({.peer_limit = 4});
    std::vector<std::unique_ptr<Sender>> senders;
    std::vector<std::unique_ptr<SendSocket>> sockets;
    for (int i = 0; i < 3; ++i) {
        Sender& each = *senders.emplace_back(std::make_unique<Sender>());
        sockets.push_back(
            std::make_unique<SendSocket>(bed.transport(), SendSocket::Options{}, each));
        sockets.back()->connect(address);
        ASSERT_TRUE(bed.run_until([&] { return each.connected || !each.closed.empty(); }));
    }
    EXPECT_TRUE(senders[1]->closed.empty());
    ASSERT_EQ(senders[2]->closed.size(), 1U);
    EXPECT_THAT(senders[2]->closed[0].detail, HasSubstr("or for another of this host"));
    EXPECT_THAT(bed.seen().rejected.back(),
                HasSubstr("2 peers of that host are connected already"));
}

TEST_P(Messages, TwoHundredSendersAreDistinguished) {
    listen({.session = {.receive_buffer_bytes = 512,
                        .receive_count = 4,
                        .handshake_timeout = std::chrono::minutes{10}}});
    netio::SessionOptions patient = SendSocket::Options{}.session;
    patient.connect_timeout = std::chrono::minutes{10};
    std::vector<std::unique_ptr<Sender>> senders;
    std::vector<std::unique_ptr<SendSocket>> sockets;
    RegisteredBuffer memory{200};
    for (std::size_t i = 0; i < 200; ++i) {
        memory.data()[i] = static_cast<std::byte>(i);
        senders.push_back(std::make_unique<Sender>());
        // On a machine that is slow with two hundred connections, none of them times out.
        sockets.push_back(std::make_unique<SendSocket>(
            bed.transport(), SendSocket::Options{.session = patient}, *senders.back()));
        senders[i]->at_connected = [&, i] {
            EXPECT_EQ(sockets[i]->send(memory.slice(i, 1), Cookie{i}), Status::ok);
        };
        sockets[i]->connect(address);
    }
    ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == 200; }));
    std::map<std::uint64_t, std::byte> by_sender;
    std::set<std::byte> seen;
    for (const Receiver::Message& message : receiver.messages) {
        EXPECT_TRUE(by_sender.emplace(message.sender, message.bytes.at(0)).second);
        seen.insert(message.bytes.at(0));
    }
    EXPECT_EQ(seen.size(), 200U);
    sockets.clear();
    ASSERT_TRUE(bed.run_until([&] { return listener->peer_count() == 0; }));
    EXPECT_EQ(receiver.closed_tags.size(), 200U);
}

TEST_P(Messages, WithWorkInFlightEverySocketMayBeDestroyedInEveryHandler) {
    using SenderHook = std::function<void()> Sender::*;
    using ReceiverHook = std::function<void(ReceiveSocket&)> Receiver::*;
    const SenderHook of_sender[] = {&Sender::at_connected, &Sender::at_completed, &Sender::at_room,
                                    &Sender::at_closed};
    const ReceiverHook of_receiver[] = {&Receiver::at_connected, &Receiver::at_message,
                                        &Receiver::at_closed};
    constexpr std::size_t cases = std::size(of_sender) + std::size(of_receiver);
    for (std::size_t i = 0; i < cases; ++i) {
        SCOPED_TRACE(i);
        receiver = {};
        sender = {};
        listen({.session = {.receive_count = 8}});
        auto socket = std::make_unique<SendSocket>(bed.transport(), SendSocket::Options{}, sender);
        RegisteredBuffer memory{50000};
        bool destroyed = false;
        std::uint64_t key = 0;
        const auto pump = [&] {
            while (socket && socket->is_connected() &&
                   socket->send(memory.slice(), Cookie{key}) == Status::ok)
                ++key;
        };
        sender.at_connected = pump;
        sender.at_room = pump;
        if (i < std::size(of_sender)) {
            sender.*of_sender[i] = [&] {
                socket.reset();
                destroyed = true;
            };
        } else {
            receiver.*of_receiver[i - std::size(of_sender)] = [&](ReceiveSocket&) {
                listener.reset();
                destroyed = true;
            };
        }
        socket->connect(address);
        ASSERT_TRUE(bed.run_until([&] { return destroyed || receiver.messages.size() > 20; }));
        // Handlers that see only the end: end the other side.
        if (!destroyed && i < std::size(of_sender)) listener.reset();
        if (!destroyed && i >= std::size(of_sender)) socket.reset();
        ASSERT_TRUE(bed.run_until([&] { return destroyed; }));
        socket.reset();
        listener.reset();
    }
}

TEST_P(Messages, ASenderIsNotifiedOfMessagesUnreadAtTheReceiversClose) {
    listen();
    receiver.at_message = [&](ReceiveSocket& socket) {
        if (receiver.messages.size() == 3) socket.close();
    };
    const auto socket = connected(sender);
    RegisteredBuffer memory{10};
    for (std::uint64_t i = 0; i < 8; ++i)
        ASSERT_EQ(socket->send(memory.slice(), Cookie{i}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages.size(), 3U);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_EQ(sender.closed[0].unconfirmed_frames, 5U);
}

TEST_P(Messages, AReceiverThatAbortsWhileItsSenderClosesLeavesItUnconfirmed) {
    listen();
    receiver.at_message = [&](ReceiveSocket& socket) {
        if (receiver.messages.size() == 3) socket.abort();
    };
    const auto socket = connected(sender);
    RegisteredBuffer memory{10};
    for (std::uint64_t i = 0; i < 8; ++i)
        ASSERT_EQ(socket->send(memory.slice(), Cookie{i}), Status::ok);
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages.size(), 3U);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::local);
    EXPECT_EQ(sender.closed[0].reason, CloseReason::unconfirmed);
    EXPECT_GE(sender.closed[0].unconfirmed_frames, 5U);
}

TEST_P(Messages, AReceiverThatClosesOneSenderKeepsTheOthers) {
    listen();
    receiver.at_message = [](ReceiveSocket& socket) {
        if (socket.tag == 1) socket.close();
    };
    const auto first = connected(sender);
    Sender other;
    const auto second = connected(other);
    RegisteredBuffer memory{10};
    ASSERT_EQ(first->send(memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly);
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly);
    ASSERT_EQ(second->send(memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, Messages, all_beds(), bed_name);

} // namespace
} // namespace netio::test::messages_test
