// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/timer_queue.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <random>

namespace netio {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct Queue {
    TimerQueue timers;
    std::deque<TimerQueue::Node> nodes;
    std::vector<int> fired;
    TimePoint begin{1h};

    TimerQueue::Node& add(int number) {
        TimerQueue::Node& node = nodes.emplace_back();
        node.handler = [this, number] { fired.push_back(number); };
        return node;
    }
    void fire_all(TimePoint now) {
        timers.collect(now);
        while (timers.fire_next()) {
        }
    }
};

TEST(TimerQueue, FiresWhatIsDueByTimeThenByOrderOfStarting) {
    Queue queue;
    TimerQueue::Node& late = queue.add(1);
    TimerQueue::Node& second = queue.add(2);
    TimerQueue::Node& first = queue.add(3);
    queue.timers.start(late, queue.begin + 2s);
    queue.timers.start(first, queue.begin + 1s);
    queue.timers.start(second, queue.begin + 1s);
    EXPECT_EQ(queue.timers.next_due(), queue.begin + 1s);
    queue.fire_all(queue.begin + 1s);
    EXPECT_THAT(queue.fired, ElementsAre(3, 2));
    EXPECT_EQ(queue.timers.next_due(), queue.begin + 2s);
}

TEST(TimerQueue, OneThatIsAlwaysBehindDoesNotKeepTheOthersWaiting) {
    Queue queue;
    TimerQueue::Node& behind = queue.add(1);
    TimerQueue::Node& other = queue.add(2);
    behind.handler = [&] {
        queue.fired.push_back(1);
        queue.timers.start(behind, queue.begin + 1ms);
    };
    queue.timers.start(behind, queue.begin + 1ms);
    queue.timers.start(other, queue.begin + 2ms);
    queue.fire_all(queue.begin + 1s);
    EXPECT_THAT(queue.fired, ElementsAre(1, 2));
    EXPECT_TRUE(behind.armed());
}

TEST(TimerQueue, WhatWasCollectedComesBeforeWhatIsDueLater) {
    Queue queue;
    TimerQueue::Node& one = queue.add(1);
    TimerQueue::Node& two = queue.add(2);
    TimerQueue::Node& three = queue.add(3);
    queue.timers.start(two, queue.begin + 2s);
    queue.timers.start(three, queue.begin + 3s);
    queue.timers.collect(queue.begin + 3s);
    EXPECT_TRUE(queue.timers.fire_next());
    EXPECT_EQ(queue.timers.next_due(), TimePoint::min()) << "one is left";
    queue.timers.start(one, queue.begin + 1s);
    queue.fire_all(queue.begin + 4s);
    EXPECT_THAT(queue.fired, ElementsAre(2, 3));
    queue.fire_all(queue.begin + 4s);
    EXPECT_THAT(queue.fired, ElementsAre(2, 3, 1));
}

TEST(TimerQueue, OneThatWasCollectedMayStillBeStoppedOrMoved) {
    Queue queue;
    TimerQueue::Node& stopped = queue.add(1);
    TimerQueue::Node& moved = queue.add(2);
    TimerQueue::Node& stays = queue.add(3);
    for (TimerQueue::Node* const node : {&stopped, &moved, &stays})
        queue.timers.start(*node, queue.begin);
    queue.timers.collect(queue.begin);
    EXPECT_TRUE(stopped.armed());
    queue.timers.stop(stopped);
    queue.timers.start(moved, queue.begin + 1s);
    EXPECT_FALSE(stopped.armed());
    while (queue.timers.fire_next()) {
    }
    EXPECT_THAT(queue.fired, ElementsAre(3));
    EXPECT_EQ(queue.timers.next_due(), queue.begin + 1s);
}

TEST(TimerQueue, NeverIsNeverDue) {
    Queue queue;
    TimerQueue::Node& never = queue.add(1);
    queue.timers.start(never, TimePoint::max());
    queue.fire_all(TimePoint::max());
    EXPECT_TRUE(queue.fired.empty());
    EXPECT_TRUE(never.armed());
}

TEST(TimerQueue, AgreesWithASortedList) {
    std::mt19937 random{7};
    Queue queue;
    constexpr int count = 50;
    std::vector<TimePoint> due(count, TimePoint::max());
    for (int number = 0; number < count; ++number)
        queue.add(number);
    TimePoint now = queue.begin;
    for (int step = 0; step < 5000; ++step) {
        const auto number = random() % count;
        if (random() % 4 == 0) {
            queue.timers.stop(queue.nodes[number]);
            due[number] = TimePoint::max();
        } else {
            due[number] = now + std::chrono::milliseconds{random() % 1000};
            queue.timers.start(queue.nodes[number], due[number]);
        }
        ASSERT_EQ(queue.timers.next_due(), std::ranges::min(due));
        if (random() % 8 != 0) continue;
        now += std::chrono::milliseconds{random() % 300};
        queue.fired.clear();
        queue.fire_all(now);
        TimePoint last = TimePoint::min();
        for (const int one : queue.fired) {
            TimePoint& its = due[static_cast<std::size_t>(one)];
            ASSERT_LE(last, its);
            ASSERT_LE(its, now);
            last = std::exchange(its, TimePoint::max());
        }
        ASSERT_GT(std::ranges::min(due), now);
    }
}

} // namespace
} // namespace netio
