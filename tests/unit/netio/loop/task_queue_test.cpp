// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/task_queue.hpp"

#include <gmock/gmock.h>

#include <memory>

namespace netio {
namespace {

using testing::ElementsAre;

const auto never = [] { return false; };
const auto at_once = [] { return true; };

struct Tasks {
    explicit Tasks(std::size_t limit) : queue{limit} {}
    TaskQueue::Put put(int number) {
        return queue.put([this, number] { ran.push_back(number); });
    }
    TaskQueue queue;
    std::vector<int> ran;
};

TEST(TaskQueue, RunsThemInOrderAndAsksForTheLoopOncePerBatch) {
    Tasks tasks{10};
    EXPECT_EQ(tasks.put(1), TaskQueue::Put::first);
    EXPECT_EQ(tasks.put(2), TaskQueue::Put::ok);
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1, 2));
    EXPECT_FALSE(tasks.queue.run(never));
    EXPECT_EQ(tasks.put(3), TaskQueue::Put::first);
}

TEST(TaskQueue, RefusesOneTaskTooMany) {
    Tasks tasks{2};
    EXPECT_EQ(tasks.put(1), TaskQueue::Put::first);
    EXPECT_EQ(tasks.put(2), TaskQueue::Put::ok);
    EXPECT_EQ(tasks.put(3), TaskQueue::Put::full);
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1, 2));
    EXPECT_EQ(tasks.put(4), TaskQueue::Put::first);
}

TEST(TaskQueue, WhatThereWasNoTimeForWaitsAndCounts) {
    Tasks tasks{3};
    for (int number = 1; number <= 3; ++number)
        std::ignore = tasks.put(number);
    EXPECT_TRUE(tasks.queue.run(at_once));
    EXPECT_THAT(tasks.ran, ElementsAre(1));
    EXPECT_TRUE(tasks.queue.waiting());
    EXPECT_NE(tasks.put(4), TaskQueue::Put::full);
    EXPECT_EQ(tasks.put(5), TaskQueue::Put::full) << "two of the first three are unfinished";
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1, 2, 3, 4));
    EXPECT_FALSE(tasks.queue.waiting());
}

TEST(TaskQueue, OneThatPostsAnotherDoesNotHoldTheLoop) {
    Tasks tasks{10};
    std::function<void()> again = [&] {
        tasks.ran.push_back(1);
        std::ignore = tasks.queue.put(again);
    };
    std::ignore = tasks.queue.put(again);
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1));
}

TEST(TaskQueue, FreesWhatATaskHoldsBehindIt) {
    Tasks tasks{10};
    auto held = std::make_shared<int>(1);
    std::ignore = tasks.queue.put([held] {});
    long still_held = 0;
    std::ignore = tasks.queue.put([&] { still_held = held.use_count(); });
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_EQ(still_held, 1);
}

TEST(TaskQueue, ThoseThatAreStillToRunCountWhileOthersDo) {
    Tasks tasks{3};
    std::vector<bool> taken;
    std::ignore = tasks.queue.put([&] {
        for (const int number : {3, 4})
            taken.push_back(tasks.put(number) != TaskQueue::Put::full);
    });
    std::ignore = tasks.put(1);
    std::ignore = tasks.put(2);
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(taken, ElementsAre(true, false)) << "its own place is free";
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1, 2, 3));
}

TEST(TaskQueue, OfAFullOneEachMayPostAnother) {
    constexpr std::size_t limit = 4;
    Tasks tasks{limit};
    std::size_t taken = 0;
    for (std::size_t i = 0; i < limit; ++i) {
        std::ignore = tasks.queue.put([&] {
            if (tasks.put(1) != TaskQueue::Put::full) ++taken;
        });
    }
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_EQ(taken, limit);
}

} // namespace
} // namespace netio
