// SPDX-License-Identifier: Apache-2.0

// A client that sends to listen sockets, over tcp; the thread sanitizer runs it as well.

#include "netio/messages/listen_socket.hpp"
#include "pubsub/client/client.hpp"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <thread>

namespace netio::pubsub::client_send_test {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

// A listen socket with its own loop and thread; it counts messages.
class Listening final : private ListenSocket::Handler {
  public:
    explicit Listening(Address at = {.host = "127.0.0.1", .port = 0},
                       ListenSocket::Options options = {})
        : transport_{open_fabric(loop_, {})} {
        options.listen = {std::move(at)};
        socket_ = std::make_unique<ListenSocket>(*transport_, std::move(options),
                                                 static_cast<ListenSocket::Handler&>(*this));
        address_ = socket_->endpoints().front().address;
        thread_ = std::thread{[this] { loop_.run(); }};
    }
    ~Listening() {
        loop_.stop();
        thread_.join();
    }
    const Address& address() const { return address_; }

    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> out_of_order{0};

  private:
    // The first byte identifies the sender, the next eight bytes are the message number.
    void on_message(ReceiveSocket&, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        std::uint64_t number = 0;
        std::memcpy(&number, message.data() + 1, sizeof number);
        std::uint64_t& next = next_[message[0]];
        if (number != next) ++out_of_order; // also counts a message after lost ones
        next = number + 1;
        ++count;
    }
    void on_closed(ReceiveSocket&, const Closed&) override {}

    EventLoop loop_;
    std::unique_ptr<Transport> transport_;
    std::map<std::byte, std::uint64_t> next_;
    Address address_;
    std::unique_ptr<ListenSocket> socket_;
    std::thread thread_;
};

Client::Options sending() {
    Client::Options options;
    options.send.socket.retry_interval = 1ms;
    options.send.page_count = 8;
    return options;
}

std::array<std::byte, 9> message_of(std::uint8_t who, std::uint64_t number) {
    std::array<std::byte, 9> message{std::byte{who}};
    std::memcpy(message.data() + 1, &number, sizeof number);
    return message;
}

Status send(Client& client, const Address& to, std::uint8_t who, std::uint64_t number) {
    Status status = Status::again;
    while ((status = client.send(to, message_of(who, number))) == Status::again)
        std::this_thread::yield();
    return status;
}

template <typename Has>
void wait_until(Has has) {
    while (!has())
        std::this_thread::yield();
}

// An address without a listener.
Address nowhere() {
    return Listening{}.address();
}

TEST(SendingClient, TenThreadsSendThroughOneClientAndAllArrive) {
    constexpr std::uint8_t threads = 10;
    constexpr std::uint64_t messages = 500;
    Listening one;
    Listening other;
    Client client{sending()};
    std::vector<std::thread> users;
    for (std::uint8_t who = 0; who < threads; ++who) {
        users.emplace_back([&, who] {
            for (std::uint64_t n = 0; n < messages; ++n) {
                EXPECT_EQ(send(client, one.address(), who, n), Status::ok);
                EXPECT_EQ(send(client, other.address(), who, n), Status::ok);
            }
        });
    }
    for (std::thread& user : users)
        user.join();
    client.close();
    EXPECT_EQ(one.count, threads * messages) << "close() waits for all of it";
    EXPECT_EQ(other.count, threads * messages);
    EXPECT_EQ(one.out_of_order + other.out_of_order, 0U);
    EXPECT_EQ(client.counters().sent, 2 * threads * messages);
    EXPECT_EQ(client.counters().unsent, 0U);
    EXPECT_EQ(client.send(one.address(), message_of(0, 0)), Status::closed);
}

// Only a call on its own thread makes the time known.
TEST(SendingClient, AcceptsNothingMoreOnceItsOwnThreadHasClosedIt) {
    Listening there;
    Client client{sending()};
    std::promise<Status> behind;
    ASSERT_TRUE(client.post([&] {
        client.close();
        behind.set_value(client.send(there.address(), message_of(1, 0)));
    }));
    EXPECT_EQ(behind.get_future().get(), Status::closed);
}

TEST(SendingClient, WhatItSendsToOneThatIsNotThereYetArrivesWhenItIs) {
    const Address address = nowhere();
    Client client{sending()};
    for (std::uint64_t n = 0; n < 100; ++n)
        ASSERT_EQ(send(client, address, 1, n), Status::ok);
    {
        const Listening first{address};
        wait_until([&] { return first.count == 100; });
        EXPECT_EQ(first.out_of_order, 0U);
    }
    // It reconnects: from some number on all messages arrive.
    const Listening second{address};
    for (std::uint64_t n = 0; second.count == 0; ++n) {
        ASSERT_EQ(send(client, address, 1, n), Status::ok);
        std::this_thread::yield();
    }
    client.close();
    EXPECT_LE(second.out_of_order, 1U);
}

TEST(SendingClient, AnUnreachableAddressBlocksNoOtherAndIsReportedAtTheEnd) {
    const Address gone = nowhere();
    Listening there;
    std::mutex mutex;
    std::vector<std::string> events;
    Client::Options options = sending();
    options.send_queue_bytes = 1000;
    options.on_event = [&](const std::string& event) {
        const std::lock_guard lock{mutex};
        events.push_back(event);
    };
    Client client{std::move(options)};
    std::uint64_t taken = 0;
    while (client.send(gone, message_of(1, 0)) == Status::ok)
        ++taken;
    EXPECT_GT(taken, 0U);
    EXPECT_LT(taken, 1000U) << "the limit applies to each address";
    for (std::uint64_t n = 0; n < 200; ++n)
        ASSERT_EQ(send(client, there.address(), 1, n), Status::ok);
    wait_until([&] { return there.count == 200; });
    client.close();
    EXPECT_EQ(client.counters().unsent, taken);
    EXPECT_THAT(events, Contains(HasSubstr("not sent to " + to_string(gone))));
}

TEST(SendingClient, ATooLargeMessageIsRefusedOrReported) {
    Listening there;
    std::vector<std::byte> huge(std::size_t{1} << 20);
    Client::Options small = sending();
    small.send.page_size_bytes = 256;
    small.send.page_count = 2;
    Client narrow{std::move(small)};
    ASSERT_EQ(narrow.send(there.address(), huge), Status::ok) << "the limit is not known yet";
    wait_until([&] { return narrow.counters().unsent == 1; });
    EXPECT_EQ(narrow.send(there.address(), huge), Status::too_large);
    ASSERT_EQ(send(narrow, there.address(), 1, 0), Status::ok);
    wait_until([&] { return there.count == 1; });
    std::vector<std::byte> largest(512); // fills both pages
    largest[0] = std::byte{2};
    ASSERT_EQ(narrow.send(there.address(), largest), Status::ok);
    wait_until([&] { return there.count == 2; });
    largest.resize(513);
    EXPECT_EQ(narrow.send(there.address(), largest), Status::too_large);
}

TEST(SendingClient, TheNumberOfAddressesIsLimited) {
    const Address address = nowhere();
    Client::Options options = sending();
    options.destination_limit = 1;
    Client client{std::move(options)};
    EXPECT_EQ(client.send(address, message_of(1, 0)), Status::ok);
    EXPECT_THROW(static_cast<void>(client.send({"127.0.0.1", 1}, message_of(1, 0))),
                 std::length_error);
    EXPECT_EQ(client.send(address, message_of(1, 1)), Status::ok);
}

// A server that replies to clients gets new addresses all the time.
TEST(SendingClient, DepartedAddressesReleaseTheirSlotForOthers) {
    Client::Options options = sending();
    options.destination_limit = 16;
    Client client{std::move(options)};
    for (int i = 0; i < 300; ++i) {
        const Listening there;
        ASSERT_EQ(send(client, there.address(), 1, 0), Status::ok);
        wait_until([&] { return there.count == 1; });
        if (i % 2 == 0) client.disconnect(there.address());
    }
    EXPECT_EQ(client.counters().sent, 300U);
}

TEST(SendingClient, WhatWasSentToAnAddressBeforeItsEndArrives) {
    Listening there;
    Client::Options options = sending();
    options.destination_limit = 1;
    Client client{std::move(options)};
    for (std::uint8_t round = 0; round < 3; ++round) {
        for (std::uint64_t n = 0; n < 500; ++n)
            ASSERT_EQ(send(client, there.address(), round, n), Status::ok);
        client.disconnect(there.address());
    }
    wait_until([&] { return there.count == 1500; });
    EXPECT_EQ(there.out_of_order, 0U);
    client.disconnect({"127.0.0.1", 1}); // not one of its destinations
    client.close();
    EXPECT_EQ(client.counters().unconfirmed_frames, 0U);
}

TEST(SendingClient, AnAddressWithUnsendableMessagesKeepsItsSlotUntilRemoved) {
    const Address gone = nowhere();
    Listening there;
    Client::Options options = sending();
    options.destination_limit = 1;
    Client client{std::move(options)};
    ASSERT_EQ(send(client, gone, 1, 0), Status::ok);
    EXPECT_THROW(static_cast<void>(client.send(there.address(), message_of(1, 0))),
                 std::length_error);
    client.disconnect(gone);
    ASSERT_EQ(send(client, there.address(), 1, 0), Status::ok);
    wait_until([&] { return there.count == 1; });
    EXPECT_EQ(client.counters().unsent, 1U);
}

TEST(SendingClient, ItMayBeDestroyedWhileMessagesWaitAndWhileTheyFlow) {
    const Address address = nowhere();
    Listening there;
    for (int i = 0; i < 5; ++i) {
        auto client = std::make_unique<Client>(sending());
        for (std::uint64_t n = 0; n < 50; ++n) {
            ASSERT_EQ(send(*client, address, 1, n), Status::ok);
            ASSERT_EQ(send(*client, there.address(), 1, n), Status::ok);
        }
        client.reset();
    }
}

} // namespace
} // namespace netio::pubsub::client_send_test
