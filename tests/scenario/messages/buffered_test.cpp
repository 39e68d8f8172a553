// SPDX-License-Identifier: Apache-2.0

// Buffered point to point: messages in pages, when pages leave, and how many there are.

#include "tests/scenario/messages/buffered_fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <random>

namespace netio::test::buffered_test {
namespace {

using namespace std::chrono_literals;

// --- delivery -------------------------------------------------------------------------------

TEST_P(BufferedMessages, OfEverySizeArriveWholeAndInOrder) {
    listen();
    connect({.page_size_bytes = 1000, .page_count = 8, .flush_time = 100us});
    EXPECT_EQ(socket->message_limit(), 8000U);
    std::vector<Bytes> sent;
    unsigned salt = 0;
    for (const std::size_t size : {0U, 1U, 40U, 51U, 52U, 53U, 995U, 996U, 997U, 1000U, 1001U,
                                   2000U, 2001U, 500U, 499U, 7999U, 8000U, 3U, 0U}) {
        sent.push_back(content(size, ++salt));
        ASSERT_TRUE(bed.run_until([&] { return send(sent.back()) == Status::ok; })) << size;
    }
    ASSERT_TRUE(arrived(sent.size()));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(receiver.messages[i].bytes, sent[i]) << i;
        EXPECT_FALSE(receiver.messages[i].immediate);
    }
    EXPECT_EQ(socket->counters().messages, sent.size());
    ASSERT_TRUE(bed.run_until([&] { return socket->pages_in_use() == 0; }));
}

TEST_P(BufferedMessages, InPartsArriveAsOne) {
    listen();
    connect({.page_size_bytes = 256, .page_count = 8, .flush_time = 0us});
    const Bytes whole = content(700, 3);
    const std::span<const std::byte> all{whole};
    std::vector<Bytes> sent;
    for (const std::size_t size : {0U, 10U, 252U, 253U, 700U}) {
        for (const std::size_t cut : {0U, 1U, 5U, 200U}) {
            const std::size_t at = std::min<std::size_t>(cut, size);
            const std::array parts{all.first(at), all.first(0), all.subspan(at, size - at)};
            ASSERT_TRUE(bed.run_until([&] { return socket->sendv(parts) == Status::ok; }));
            sent.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        }
    }
    socket->flush();
    ASSERT_TRUE(arrived(sent.size()));
    for (std::size_t i = 0; i < sent.size(); ++i)
        EXPECT_EQ(receiver.messages[i].bytes, sent[i]) << i;
}

TEST_P(BufferedMessages, OfRandomSizesArriveInOrder) {
    listen({.session = {.receive_count = 4}});
    connect(
        {.socket = {.session = {.receive_buffer_bytes = 256, .receive_count = 16, .send_count = 2}},
         .page_size_bytes = 700,
         .page_count = 5,
         .watermark_bytes = 600,
         .flush_time = 50us});
    std::mt19937_64 random{7};
    std::size_t sent = 0;
    Bytes next;
    const auto size_of = [&] {
        const auto scale = random() % 8;
        return static_cast<std::size_t>(random() % (scale == 0 ? 3000 : scale < 3 ? 700 : 60));
    };
    next = content(size_of(), 0);
    std::vector<Bytes> all;
    sender.at_room = [&] {
        while (sent < 3000 && send(next) == Status::ok) {
            all.push_back(next);
            next = content(size_of(), static_cast<unsigned>(++sent));
        }
    };
    sender.at_room();
    ASSERT_TRUE(arrived(3000));
    EXPECT_GT(sender.room, 0);
    for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(receiver.messages[i].bytes, all[i]) << i;
}

TEST_P(BufferedMessages, AndUnbufferedOnesMayMeetAtOneListener) {
    listen();
    connect(patient);
    struct Unbuffered final : SendSocket::Handler {
        void on_connected(SendSocket&) override { ++connected; }
        void on_send_completed(SendSocket&, Cookie, Completion::Outcome) override {}
        void on_writable(SendSocket&) override {}
        void on_closed(SendSocket&, const Closed&) override {}
        int connected = 0;
    } other;
    SendSocket unbuffered{bed.transport(), {}, other};
    unbuffered.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return other.connected == 1; }));
    RegisteredBuffer memory{100};
    ASSERT_EQ(unbuffered.send(memory.slice(), Cookie{1}, 5), Status::ok);
    ASSERT_EQ(send(content(30, 1)), Status::ok);
    socket->flush();
    ASSERT_TRUE(arrived(2));
    for (const Receiver::Message& message : receiver.messages)
        EXPECT_EQ(message.immediate.has_value(), message.bytes.size() == 100);
}

// --- when a page leaves ---------------------------------------------------------------------

TEST_P(BufferedMessages, LeaveAtOnceAfterAPauseAndThenOnceInAFlushTime) {
    listen();
    connect({.flush_time = 20ms});
    ASSERT_EQ(send(content(40, 1)), Status::ok);
    ASSERT_EQ(send(content(40, 2)), Status::ok);
    EXPECT_EQ(socket->counters().pages, 0U) << "it waits for the end of the turn";
    const TimePoint before = bed.loop().now(); // no page left earlier, however slow the machine
    ASSERT_TRUE(bed.run_until([&] { return socket->counters().pages == 1; }));
    ASSERT_EQ(send(content(40, 3)), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return socket->counters().pages == 2; }));
    EXPECT_GE(bed.loop().now() - before, 20ms);
    ASSERT_EQ(send(content(40, 4)), Status::ok);
    socket->flush(); // not counted
    ASSERT_EQ(send(content(40, 5)), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return socket->counters().pages == 4; }));
    EXPECT_GE(bed.loop().now() - before, 40ms);
    ASSERT_TRUE(arrived(5));
}

TEST_P(BufferedMessages, WaitForTheFlushTimeHoweverOftenTheLoopTurns) {
    listen();
    connect({.flush_time = std::chrono::hours{1}});
    ASSERT_EQ(send({}), Status::ok);
    ASSERT_TRUE(arrived(1));
    ASSERT_EQ(send({}), Status::ok);
    int turns = 0;
    const std::function<void()> turn = [&] {
        if (++turns < 20) {
            ASSERT_TRUE(bed.loop().post(turn));
        }
    };
    turn();
    ASSERT_TRUE(bed.run_until([&] { return turns == 20; }));
    EXPECT_EQ(socket->counters().pages, 1U);
    socket->flush();
    ASSERT_TRUE(arrived(2));
}

TEST_P(BufferedMessages, LeaveAtTheWatermark) {
    listen();
    auto options = patient;
    options.watermark_bytes = 100;
    connect(options);
    ASSERT_EQ(send(content(46, 1)), Status::ok); // 50 bytes with its header
    ASSERT_EQ(send(content(45, 2)), Status::ok); // 99 bytes
    EXPECT_EQ(socket->counters().pages, 0U);
    ASSERT_EQ(send({}), Status::ok);
    EXPECT_EQ(socket->counters().pages, 1U);
    ASSERT_TRUE(arrived(3));
}

TEST_P(BufferedMessages, LeaveWhenThePageIsFull) {
    listen();
    connect(patient);
    ASSERT_EQ(send(content(500, 1)), Status::ok);
    ASSERT_EQ(send(content(515, 2)), Status::ok); // 1023 bytes
    EXPECT_EQ(socket->counters().pages, 0U);
    ASSERT_EQ(send({}), Status::ok); // does not fit there
    EXPECT_EQ(socket->counters().pages, 1U);
    ASSERT_TRUE(arrived(2));
    ASSERT_EQ(send(content(1016, 3)), Status::ok); // 4 + 1020 bytes: exactly full
    EXPECT_EQ(socket->counters().pages, 2U);
    ASSERT_TRUE(arrived(4));
}

TEST_P(BufferedMessages, LeaveOnFlush) {
    listen();
    connect(patient);
    socket->flush(); // no page is open
    EXPECT_EQ(socket->counters().pages, 0U);
    ASSERT_EQ(send(content(40, 1)), Status::ok);
    EXPECT_EQ(socket->pages_in_use(), 1U);
    socket->flush();
    EXPECT_EQ(socket->counters().pages, 1U);
    ASSERT_TRUE(arrived(1));
    ASSERT_TRUE(bed.run_until([&] { return socket->pages_in_use() == 0; }));
}

TEST_P(BufferedMessages, LeaveInPagesThatFitTheReceiversBuffers) {
    listen({.session = {.receive_buffer_bytes = 256}, .largest_message_bytes = 600});
    connect({.page_size_bytes = 4096, .page_count = 8, .flush_time = 0us});
    EXPECT_EQ(socket->message_limit(), 600U);
    for (unsigned i = 0; i < 50; ++i)
        ASSERT_TRUE(bed.run_until([&] { return send(content(i * 12, i)) == Status::ok; }));
    socket->flush();
    ASSERT_TRUE(arrived(50));
    for (unsigned i = 0; i < 50; ++i)
        EXPECT_EQ(receiver.messages[i].bytes, content(i * 12, i));
}

// --- limits ---------------------------------------------------------------------------------

TEST_P(BufferedMessages, LargerThanTheLimitAreRefusedAndNothingIsSent) {
    listen({.largest_message_bytes = 2000});
    connect(patient);
    EXPECT_EQ(socket->message_limit(), 2000U);
    EXPECT_EQ(send(Bytes(2001)), Status::too_large);
    EXPECT_EQ(send(content(2000, 1)), Status::ok);
    ASSERT_TRUE(arrived(1));
    EXPECT_EQ(receiver.messages[0].bytes, content(2000, 1));
}

TEST_P(BufferedMessages, ForAReceiverWithoutReassemblyFillAPageAtMost) {
    listen({.largest_message_bytes = 0});
    connect(patient);
    EXPECT_EQ(socket->message_limit(), 1020U);
    EXPECT_EQ(send(Bytes(1021)), Status::too_large);
    EXPECT_EQ(send(content(1020, 1)), Status::ok);
    ASSERT_TRUE(arrived(1));
}

TEST_P(BufferedMessages, WaitWhenAllPagesAreInFlightUntilOnWritable) {
    listen();
    connect(patient);
    std::size_t sent = 0;
    while (send(content(1020, static_cast<unsigned>(sent))) == Status::ok)
        ++sent;
    EXPECT_EQ(sent, 4U) << "one message fills a page";
    EXPECT_EQ(socket->pages_in_use(), 4U);
    EXPECT_EQ(socket->counters().again, 1U);
    EXPECT_EQ(send({}), Status::again);
    sender.at_room = [&] {
        while (sent < 100 && send(content(1020, static_cast<unsigned>(sent))) == Status::ok)
            ++sent;
    };
    ASSERT_TRUE(arrived(100));
    for (std::size_t i = 0; i < 100; ++i)
        ASSERT_EQ(receiver.messages[i].bytes, content(1020, static_cast<unsigned>(i)));
}

TEST_P(BufferedMessages, InFragmentsWaitForAsManyPages) {
    listen();
    connect(patient);
    ASSERT_EQ(send(content(100, 1)), Status::ok);
    const Bytes large = content(4096, 2);
    EXPECT_EQ(send(large), Status::again); // the first message's page is in flight
    EXPECT_EQ(socket->counters().pages, 1U);
    bool taken = false;
    sender.at_room = [&] { taken = taken || send(large) == Status::ok; };
    ASSERT_TRUE(arrived(2));
    EXPECT_EQ(receiver.messages[1].bytes, large);
    EXPECT_EQ(socket->counters().pages, 5U);
}

TEST_P(BufferedMessages, AreRefusedWhileThereIsNoConnection) {
    listen();
    socket = std::make_unique<BufferedSendSocket>(bed.transport(), patient, sender);
    EXPECT_EQ(send({}), Status::closed);
    socket->flush();
    socket->close();
    socket->connect(address);
    EXPECT_EQ(send({}), Status::closed);
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
    EXPECT_EQ(send({}), Status::closed);
    EXPECT_EQ(socket->pages_in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, BufferedMessages, all_beds(), bed_name);

TEST_P(BufferedMessages, ATimeThatIsTooLongForAPageIsRefused) {
    for (const auto time : {std::chrono::microseconds{-1}, std::chrono::microseconds::max()}) {
        EXPECT_THROW((BufferedSendSocket{bed.transport(), {.flush_time = time}, sender}),
                     std::invalid_argument);
    }
}

} // namespace
} // namespace netio::test::buffered_test
