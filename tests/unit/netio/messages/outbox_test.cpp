// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/outbox.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace netio::outbox_test {
namespace {

constexpr auto never = [] { return false; };
using Message = Outbox::Message;

Message message(std::size_t number) {
    return Message(number); // its size is its number
}

TEST(Outbox, DrainsInOrderAndContinuesWhereItWasBlocked) {
    Outbox box{1 << 20};
    for (std::size_t i = 0; i < 5; ++i)
        ASSERT_EQ(box.put(message(i)), Status::ok);
    std::vector<std::size_t> sent;
    const auto two = [&](const Message& each) {
        if (sent.size() == 2) return false;
        sent.push_back(each.size());
        return true;
    };
    EXPECT_EQ(box.drain(two, never), Outbox::Drained::blocked);
    EXPECT_FALSE(box.empty());
    const auto all = [&](const Message& each) { return sent.push_back(each.size()), true; };
    EXPECT_EQ(box.drain(all, never), Outbox::Drained::all);
    EXPECT_EQ(sent, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(box.empty());
}

// Other threads put messages as fast as the loop sends; the turn ends nevertheless.
TEST(Outbox, EndsWithTheTurnDespiteNewMessages) {
    Outbox box{1 << 20};
    ASSERT_EQ(box.put(message(0)), Status::ok);
    std::size_t sent = 0;
    const auto send = [&](const Message& each) {
        EXPECT_EQ(each.size(), sent);
        ++sent;
        return sent > 1000 || box.put(message(sent)) == Status::ok;
    };
    for (std::size_t turn = 1; turn <= 10; ++turn) {
        int left = 7;
        EXPECT_EQ(box.drain(send, [&] { return --left == 0; }), Outbox::Drained::time_is_up);
        EXPECT_EQ(sent, turn * 7);
    }
}

TEST(Outbox, HasALimitThatCountsWhatIsBeingSentAndTakesOneInAnyCase) {
    Outbox box{1};
    ASSERT_EQ(box.put(message(100)), Status::ok);
    EXPECT_EQ(box.put(message(0)), Status::again);
    const auto in_between = [&](const Message&) {
        EXPECT_EQ(box.put(message(0)), Status::again);
        return true;
    };
    EXPECT_EQ(box.drain(in_between, never), Outbox::Drained::all);
    EXPECT_EQ(box.put(message(0)), Status::ok);
    box.close();
    EXPECT_EQ(box.put(message(0)), Status::closed);
    EXPECT_EQ(box.discard(), 1U);
    EXPECT_TRUE(box.empty());
}

TEST(Outbox, TakesAsMuchAsExactlyItsLimitAndAgainAsMuchAsHasBeenSent) {
    Outbox box{2 * sizeof(Message) + 30};
    EXPECT_EQ(box.put(message(10)), Status::ok);
    EXPECT_EQ(box.put(message(21)), Status::again);
    EXPECT_EQ(box.put(message(20)), Status::ok);
    EXPECT_EQ(box.put(message(0)), Status::again);
    bool is_first = true;
    const auto send_one = [&](const Message&) { return std::exchange(is_first, false); };
    EXPECT_EQ(box.drain(send_one, never), Outbox::Drained::blocked);
    EXPECT_EQ(box.put(message(11)), Status::again);
    EXPECT_EQ(box.put(message(10)), Status::ok);
}

TEST(Outbox, APutWaitsForSpaceForItsTimeOrUntilTheEnd) {
    Outbox box{100};
    ASSERT_EQ(box.put(message(100)), Status::ok);
    const auto begin = Clock::now();
    EXPECT_EQ(box.put(message(1), begin + std::chrono::milliseconds{20}), Status::again);
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds{20});
    const auto wait = [&] { return box.put(message(100), begin + std::chrono::minutes{1}); };
    std::future<Status> waiting = std::async(std::launch::async, wait);
    EXPECT_NE(waiting.wait_for(std::chrono::seconds{0}), std::future_status::ready);
    const auto send = [](const Message&) { return true; };
    EXPECT_EQ(box.drain(send, [] { return true; }), Outbox::Drained::time_is_up); // frees space
    EXPECT_EQ(waiting.get(), Status::ok);
    waiting = std::async(std::launch::async, wait);
    box.close();
    EXPECT_EQ(waiting.get(), Status::closed);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds{40});
}

} // namespace
} // namespace netio::outbox_test
