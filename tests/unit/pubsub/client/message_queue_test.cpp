// SPDX-License-Identifier: Apache-2.0
// The client's thread and others at one queue, one call after the other.

#include "pubsub/client/message_queue.hpp"

#include "netio/base/time.hpp"
#include "tests/support/open_descriptors.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <poll.h>
#include <set>
#include <string>
#include <vector>

namespace netio::pubsub {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr milliseconds none{0};

class Queue : public testing::Test {
  protected:
    void make(SlowPolicy when_full, std::size_t messages) {
        queue = std::make_unique<MessageQueue>(
            BatchFiller::Options{.limit = {.messages = messages, .bytes = 1 << 20},
                                 .when_full = when_full},
            [this] { ++went_on; });
    }
    bool put(std::uint64_t number, Fid fid = Fid{1}) {
        const std::array bytes{static_cast<std::byte>(number)};
        return queue->put(fid, bytes, 0);
    }
    // The numbers of those that are there for others; behind `-` how many are missing in front.
    std::vector<std::string> take(std::size_t at_most = SIZE_MAX) {
        std::vector<Message> messages;
        queue->poll(messages, at_most, none);
        std::vector<std::string> taken;
        for (const Message& message : messages) {
            taken.push_back(std::to_string(static_cast<int>(message.bytes.at(0))));
            if (message.missed > 0) taken.back() += " -" + std::to_string(message.missed);
        }
        return taken;
    }
    bool is_readable() const {
        pollfd watched{.fd = queue->pollable_fd(), .events = POLLIN, .revents = 0};
        return ::poll(&watched, 1, 0) == 1;
    }

    std::unique_ptr<MessageQueue> queue;
    int went_on = 0;
};

TEST_F(Queue, WhatWasPutIsThereForOthersBehindTheTurn) {
    make(SlowPolicy::block, 10);
    EXPECT_TRUE(put(1));
    EXPECT_TRUE(put(2));
    EXPECT_THAT(take(), IsEmpty());
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    EXPECT_EQ(went_on, 0) << "nobody has stopped";
}

TEST_F(Queue, ItsDescriptorIsReadableUntilTheLastOneHasBeenTaken) {
    make(SlowPolicy::block, 10);
    EXPECT_FALSE(is_readable());
    put(1);
    put(2);
    EXPECT_FALSE(is_readable());
    queue->hand_over();
    EXPECT_TRUE(is_readable());
    EXPECT_THAT(take(1), ElementsAre("1"));
    EXPECT_TRUE(is_readable());
    put(3);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("2", "3"));
    EXPECT_FALSE(is_readable());
    EXPECT_THAT(take(), IsEmpty());
    put(4);
    queue->hand_over();
    EXPECT_TRUE(is_readable());
}

TEST_F(Queue, ThatIsFullStopsUntilHalfOfItHasBeenTakenAndThenOnce) {
    make(SlowPolicy::block, 4);
    for (std::uint64_t number = 1; number < 4; ++number)
        EXPECT_TRUE(put(number));
    EXPECT_FALSE(put(4)) << "it is full";
    EXPECT_FALSE(put(5)) << "and takes what comes all the same";
    EXPECT_EQ(take(2).size(), 2U) << "who is to stop has handed it over";
    EXPECT_EQ(went_on, 0);
    EXPECT_THAT(take(1), ElementsAre("3"));
    EXPECT_EQ(went_on, 1);
    EXPECT_THAT(take(), ElementsAre("4", "5"));
    EXPECT_EQ(went_on, 1) << "once";
    EXPECT_TRUE(put(6));
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), ElementsAre("6"));
    EXPECT_EQ(went_on, 1);
}

// What others take meanwhile is seen in the next turn, but for once in each.
TEST_F(Queue, WhoDropsLooksForRoomOnceATurn) {
    make(SlowPolicy::drop, 2);
    put(1);
    put(2);
    queue->hand_over();
    EXPECT_TRUE(put(3)) << "nobody is held up";
    EXPECT_EQ(queue->dropped(), 1U);
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    put(4);
    EXPECT_EQ(queue->dropped(), 2U) << "it has looked in this turn";
    EXPECT_TRUE(queue->hand_over());
    put(5);
    EXPECT_EQ(queue->dropped(), 2U);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("5 -2"));
    EXPECT_EQ(went_on, 0);
}

TEST_F(Queue, WhoDropsFindsRoomThatThereIsWithinATurn) {
    make(SlowPolicy::drop, 2);
    put(1);
    put(2);
    queue->hand_over();
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    put(3);
    put(4);
    EXPECT_EQ(queue->dropped(), 0U);
    put(5);
    EXPECT_EQ(queue->dropped(), 1U) << "two that are not handed over yet fill it";
}

TEST_F(Queue, WhatIsKeptOfEachFidIsThereWhenThereIsRoom) {
    make(SlowPolicy::newest, 2);
    put(1);
    put(2);
    EXPECT_TRUE(queue->hand_over());
    put(3);
    put(4);
    put(5, Fid{2});
    EXPECT_EQ(queue->dropped(), 1U) << "the one before the last";
    EXPECT_TRUE(queue->hand_over()) << "nobody is held up";
    EXPECT_EQ(went_on, 0);
    EXPECT_THAT(take(), ElementsAre("1", "2"));
    EXPECT_EQ(went_on, 1) << "to hand over what is kept";
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), ElementsAre("4 -1", "5"));
    EXPECT_TRUE(queue->hand_over());
    EXPECT_THAT(take(), IsEmpty());
}

TEST_F(Queue, WhoWaitsIsWokenByWhatComesAndByTheEnd) {
    make(SlowPolicy::block, 10);
    MessageBatch batch;
    const auto wait = [this, &batch] { return queue->poll(batch, seconds{60}); };
    const TimePoint begin = Clock::now();
    std::future<std::size_t> woken = std::async(std::launch::async, wait);
    put(1);
    queue->hand_over();
    EXPECT_EQ(woken.get(), 1U);
    EXPECT_LT(Clock::now() - begin, seconds{40}) << "not by the time that it waits at most";
    woken = std::async(std::launch::async, wait);
    std::future<void> ended = std::async(std::launch::async, [this] { queue->wait_for_end(); });
    queue->add_missed(Fid{7}, 3);
    queue->end();
    ended.get();
    EXPECT_EQ(woken.get(), 1U);
    EXPECT_TRUE(batch[0].is_gap);
    EXPECT_EQ(batch[0].missed, 3U);
    EXPECT_EQ(queue->poll(batch, seconds{60}), 0U);
    EXPECT_LT(Clock::now() - begin, seconds{50}) << "nothing comes any more";
}

TEST_F(Queue, LeavesNoDescriptorOpen) {
    const std::set<int> before = netio::test::open_descriptors();
    make(SlowPolicy::block, 10);
    EXPECT_NE(netio::test::open_descriptors(), before);
    queue.reset();
    EXPECT_EQ(netio::test::open_descriptors(), before);
}

} // namespace
} // namespace netio::pubsub
