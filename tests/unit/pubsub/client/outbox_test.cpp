// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/outbox.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace netio::pubsub {
namespace {

struct Item {
    int number = 0;
    std::vector<std::byte> bytes;
};
using Box = Outbox<Item>;

constexpr auto never = [] { return false; };

TEST(Outbox, GivesWhatWasPutInOrderAndGoesOnWhereItWasHeldUp) {
    Box box{1 << 20};
    for (int i = 0; i < 5; ++i)
        ASSERT_EQ(box.put({.number = i, .bytes = {}}), Status::ok);
    std::vector<int> sent;
    const auto two = [&](const Item& item) {
        if (sent.size() == 2) return false;
        sent.push_back(item.number);
        return true;
    };
    EXPECT_EQ(box.drain(two, never), Box::Drained::held_up);
    EXPECT_FALSE(box.empty());
    const auto all = [&](const Item& item) { return sent.push_back(item.number), true; };
    EXPECT_EQ(box.drain(all, never), Box::Drained::all);
    EXPECT_EQ(sent, (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(box.empty());
}

// Others put as fast as it sends: a turn of the loop ends all the same.
TEST(Outbox, EndsWithTheTimeOfTheTurnThoughMoreComesAllTheTime) {
    Box box{1 << 20};
    ASSERT_EQ(box.put({.number = 0, .bytes = {}}), Status::ok);
    int sent = 0;
    const auto send = [&](const Item& item) {
        EXPECT_EQ(item.number, sent);
        ++sent;
        return sent > 1000 || box.put({.number = sent, .bytes = {}}) == Status::ok;
    };
    for (int turn = 1; turn <= 10; ++turn) {
        int left = 7;
        EXPECT_EQ(box.drain(send, [&] { return --left == 0; }), Box::Drained::time_is_up);
        EXPECT_EQ(sent, turn * 7);
    }
}

TEST(Outbox, HasALimitThatCountsWhatIsBeingSentAndTakesOneInAnyCase) {
    Box box{1};
    ASSERT_EQ(box.put({.number = 0, .bytes = std::vector<std::byte>(100)}), Status::ok);
    EXPECT_EQ(box.put({.number = 1, .bytes = {}}), Status::again);
    const auto in_between = [&](const Item&) {
        EXPECT_EQ(box.put({.number = 1, .bytes = {}}), Status::again);
        return true;
    };
    EXPECT_EQ(box.drain(in_between, never), Box::Drained::all);
    EXPECT_EQ(box.put({.number = 1, .bytes = {}}), Status::ok);
    box.close();
    EXPECT_EQ(box.put({.number = 2, .bytes = {}}), Status::closed);
}

TEST(Outbox, TakesAsMuchAsExactlyItsLimitAndAgainAsMuchAsHasBeenSent) {
    Box box{2 * sizeof(Item) + 30};
    const auto put = [&box](std::size_t bytes) {
        return box.put({.number = 0, .bytes = std::vector<std::byte>(bytes)});
    };
    EXPECT_EQ(put(10), Status::ok);
    EXPECT_EQ(put(21), Status::again);
    EXPECT_EQ(put(20), Status::ok);
    EXPECT_EQ(put(0), Status::again);
    bool is_first = true;
    const auto send_one = [&](const Item&) { return std::exchange(is_first, false); };
    EXPECT_EQ(box.drain(send_one, never), Box::Drained::held_up);
    EXPECT_EQ(put(11), Status::again);
    EXPECT_EQ(put(10), Status::ok);
}

} // namespace
} // namespace netio::pubsub
