// SPDX-License-Identifier: Apache-2.0

// netio::Sender over tcp, used by several threads; the thread sanitizer runs it as well.

#include "netio/messages/listen_socket.hpp"
#include "netio/messages/sender.hpp"
#include "tests/support/log_lines.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace netio::sender_threads_test {
namespace {

using namespace std::chrono_literals;

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

netio::Sender::Options quick() {
    netio::Sender::Options options;
    options.socket.socket.retry_interval = 1ms;
    options.socket.page_count = 8;
    return options;
}

std::array<std::byte, 9> message_of(std::uint8_t who, std::uint64_t number) {
    std::array<std::byte, 9> message{std::byte{who}};
    std::memcpy(message.data() + 1, &number, sizeof number);
    return message;
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

class SenderThreads : public testing::Test {
  protected:
    test::LogLines lines;
};

TEST_F(SenderThreads, TenSendToTwoReceiversAndAllArrives) {
    constexpr std::uint8_t threads = 10;
    constexpr std::uint64_t messages = 500;
    Listening one;
    Listening other;
    netio::Sender::Options options = quick();
    options.context.emplace();
    options.queue_limit_bytes = 1000; // send() waits
    netio::Sender to_one{one.address(), options};
    netio::Sender to_other{other.address(), options};
    std::vector<std::thread> users;
    for (std::uint8_t who = 0; who < threads; ++who) {
        users.emplace_back([&, who] {
            for (std::uint64_t n = 0; n < messages; ++n) {
                to_one.send(message_of(who, n));
                to_other.send(message_of(who, n));
            }
        });
    }
    for (std::thread& user : users)
        user.join();
    to_one.close();
    to_other.close();
    EXPECT_EQ(one.count, threads * messages) << "close() waits for all of it";
    EXPECT_EQ(other.count, threads * messages);
    EXPECT_EQ(one.out_of_order + other.out_of_order, 0U);
    EXPECT_EQ(to_one.stats().sent + to_other.stats().sent, 2 * threads * messages);
    EXPECT_EQ(to_one.stats().unsent + to_other.stats().unsent, 0U);
    EXPECT_EQ(to_one.try_send(message_of(0, 0)), Status::closed);
}

// Only a call on its own thread makes the time known.
TEST_F(SenderThreads, AcceptsNothingMoreOnceItsOwnThreadHasClosedIt) {
    Listening there;
    netio::Sender::Options options = quick();
    const Context& context = options.context.emplace();
    netio::Sender sender{there.address(), options};
    context.run([&] {
        sender.close();
        EXPECT_EQ(sender.try_send(message_of(1, 0)), Status::closed);
        EXPECT_FALSE(sender.is_closed());
    });
    sender.close();
    EXPECT_TRUE(sender.is_closed());
}

TEST_F(SenderThreads, WhatIsSentToOneThatIsNotThereYetArrivesWhenItIs) {
    const Address address = nowhere();
    netio::Sender sender{address, quick()};
    for (std::uint64_t n = 0; n < 100; ++n)
        sender.send(message_of(1, n));
    {
        const Listening first{address};
        wait_until([&] { return first.count == 100; });
        EXPECT_EQ(first.out_of_order, 0U);
    }
    // It reconnects: from some number on all messages arrive.
    const Listening second{address};
    for (std::uint64_t n = 0; second.count == 0; ++n) {
        sender.send(message_of(1, n));
        std::this_thread::yield();
    }
    sender.close();
    EXPECT_LE(second.out_of_order, 1U);
}

TEST_F(SenderThreads, AnUnreachableReceiverBlocksNoOtherAndIsReportedAtTheEnd) {
    const Address gone = nowhere();
    Listening there;
    netio::Sender::Options options = quick();
    options.context.emplace();
    options.queue_limit_bytes = 1000;
    options.send_timeout = 10ms;
    options.close_timeout = 10ms; // no receiver listens at this address
    netio::Sender to_gone{gone, options};
    netio::Sender to_there{there.address(), options};
    std::uint64_t taken = 0;
    while (to_gone.try_send(message_of(1, 0)) == Status::ok)
        ++taken;
    EXPECT_GT(taken, 0U);
    EXPECT_LT(taken, 1000U);
    try {
        to_gone.send(message_of(1, 0));
        ADD_FAILURE() << "there is space";
    } catch (const Error& error) {
        EXPECT_EQ(error.status(), Status::again);
    }
    for (std::uint64_t n = 0; n < 200; ++n)
        while (to_there.try_send(message_of(1, n)) == Status::again)
            std::this_thread::yield();
    wait_until([&] { return there.count == 200; });
    to_gone.close();
    EXPECT_EQ(to_gone.stats().unsent, taken);
    EXPECT_EQ(lines.count(to_string(gone) + ": " + std::to_string(taken) + " messages were not"),
              1U);
}

TEST_F(SenderThreads, ATooLargeMessageIsRefusedOrCounted) {
    Listening there;
    std::vector<std::byte> huge(std::size_t{1} << 20);
    netio::Sender::Options small = quick();
    small.socket.page_size_bytes = 256;
    small.socket.page_count = 2;
    netio::Sender narrow{there.address(), std::move(small)};
    ASSERT_EQ(narrow.try_send(huge), Status::ok) << "the limit is not known yet";
    wait_until([&] { return narrow.stats().unsent == 1; });
    EXPECT_EQ(narrow.try_send(huge), Status::too_large);
    narrow.send(message_of(1, 0));
    wait_until([&] { return there.count == 1; });
    std::vector<std::byte> largest(512); // fills both pages
    largest[0] = std::byte{2};
    narrow.send(largest);
    wait_until([&] { return there.count == 2; });
    largest.resize(513);
    EXPECT_EQ(narrow.try_send(largest), Status::too_large);
    EXPECT_EQ(lines.count("takes no message of 1048576 bytes"), 1U);
}

// A server that replies to clients gets new addresses all the time.
TEST_F(SenderThreads, ManyFollowEachOtherOnOneContext) {
    netio::Sender::Options options = quick();
    options.context.emplace();
    for (int i = 0; i < 100; ++i) {
        const Listening there;
        netio::Sender sender{there.address(), options};
        for (std::uint64_t n = 0; n < 10; ++n)
            sender.send(message_of(1, n));
        sender.close();
        EXPECT_EQ(there.count, 10U);
        EXPECT_EQ(sender.stats().unconfirmed_frames, 0U);
    }
}

TEST_F(SenderThreads, ItMayBeDestroyedWhileMessagesWaitAndWhileTheyFlow) {
    const Address address = nowhere();
    Listening there;
    netio::Sender::Options impatient = quick();
    impatient.close_timeout = 1ms;
    for (int i = 0; i < 5; ++i) {
        netio::Sender to_nowhere{address, impatient};
        netio::Sender to_there{there.address(), quick()};
        for (std::uint64_t n = 0; n < 50; ++n) {
            to_nowhere.send(message_of(1, n));
            to_there.send(message_of(1, n));
        }
    }
    EXPECT_EQ(there.count, 250U) << "the destructor closes in order";
}

} // namespace
} // namespace netio::sender_threads_test
