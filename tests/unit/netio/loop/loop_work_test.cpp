// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/loop_work.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>

namespace netio::loop_work_test {
namespace {

const auto never = [] { return false; };
const auto at_once = [] { return true; };

struct Source final : EventSource {
    explicit Source(std::function<std::size_t(std::size_t)> what) : act{std::move(what)} {}
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override { return act(budget); }
    bool may_sleep() override { return sleepy; }
    bool worth_polling() const noexcept override { return polled; }

    std::function<std::size_t(std::size_t)> act;
    bool sleepy = true;
    bool polled = false;
};

TEST(TaskQueue, DiscardsWhatATurnHasLeftAndWhatWasPutSince) {
    TaskQueue queue{10};
    const auto token = std::make_shared<int>();
    const auto put = [&] { queue.put([token] {}); };
    put();
    put();
    EXPECT_TRUE(queue.run(at_once));
    put();
    EXPECT_EQ(token.use_count(), 3);
    queue.discard();
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_FALSE(queue.waiting());
}

TEST(SourceSet, DrainsTheActiveOnesOnly) {
    SourceSet set;
    std::string log;
    Source a{[&](std::size_t) { return log += 'a', 1U; }};
    Source b{[&](std::size_t) { return log += 'b', 1U; }};
    set.add(a);
    set.add(b);
    EXPECT_TRUE(set.drain(10, never).worked);
    EXPECT_EQ(log, "ab") << "a new source may already have work";
    EXPECT_FALSE(set.drain(10, never).worked);
    SourceSet::activate(b);
    set.drain(10, never);
    EXPECT_EQ(log, "abb");
}

TEST(SourceSet, APolledSourceStaysActiveUntilItIsArmed) {
    SourceSet set;
    int drained = 0;
    Source source{[&](std::size_t) { return ++drained, 0U; }};
    source.polled = true;
    set.add(source);
    set.drain(10, never);
    set.drain(10, never);
    EXPECT_EQ(drained, 2);
    source.sleepy = false;
    EXPECT_FALSE(set.arm());
    source.sleepy = true;
    EXPECT_TRUE(set.arm());
    set.drain(10, never);
    EXPECT_EQ(drained, 2);
    set.activate_polled();
    set.drain(10, never);
    EXPECT_EQ(drained, 3);
}

TEST(SourceSet, ReportsWhetherWorkIsLeft) {
    SourceSet set;
    std::size_t there = 3;
    Source source{[&](std::size_t budget) {
        const std::size_t work = std::min(budget, there);
        there -= work;
        return work;
    }};
    source.polled = true;
    set.add(source);
    EXPECT_FALSE(set.drain(2, never).completely);
    EXPECT_TRUE(set.drain(2, never).completely);
}

TEST(SourceSet, ContinuesWhereItWasInterrupted) {
    SourceSet set;
    std::string log;
    Source a{[&](std::size_t) { return log += 'a', 1U; }};
    Source b{[&](std::size_t) { return log += 'b', 1U; }};
    Source c{[&](std::size_t) { return log += 'c', 1U; }};
    for (Source* const source : {&a, &b, &c}) {
        source->polled = true;
        set.add(*source);
    }
    for (int i = 0; i < 4; ++i)
        EXPECT_FALSE(set.drain(10, at_once).completely);
    EXPECT_EQ(log, "abca");
}

TEST(SourceSet, SourcesMayComeAndGoWhileDraining) {
    SourceSet set;
    std::string log;
    Source late{[&](std::size_t) { return log += 'l', 1U; }};
    Source doomed{[&](std::size_t) { return log += 'd', 1U; }};
    Source last{[&](std::size_t) { return log += 'z', 1U; }};
    Source first{[&](std::size_t) {
        log += 'f';
        set.remove(doomed);
        set.add(late);
        return 1U;
    }};
    set.add(first);
    set.add(doomed);
    set.add(last);
    set.drain(10, never);
    EXPECT_EQ(log, "fz");
    EXPECT_FALSE(set.contains(doomed));
    set.drain(10, never);
    EXPECT_EQ(log, "fzl");
    set.remove(first);
    set.remove(late);
    set.remove(last);
    EXPECT_TRUE(set.empty());
}

TEST(SourceSet, ARemovedSourceIsSkippedAndMayBeAddedAgain) {
    SourceSet set;
    std::string log;
    Source first{[&](std::size_t) { return log += 'f', 1U; }};
    Source second{[&](std::size_t) { return log += 's', 1U; }};
    set.add(first);
    set.add(second);
    set.remove(first);
    EXPECT_FALSE(set.contains(first));
    set.add(first);
    set.drain(10, never);
    EXPECT_EQ(log, "sf");
    set.remove(second);
    set.remove(first);
    EXPECT_TRUE(set.empty());
}

TEST(SourceSet, ASourceMayRemoveItself) {
    SourceSet set;
    Source source{[&](std::size_t) { return set.remove(source), 1U; }};
    set.add(source);
    EXPECT_TRUE(set.drain(10, never).worked);
    EXPECT_TRUE(set.empty());
    EXPECT_TRUE(set.arm());
}

TEST(SourceSet, TheTimeIsCheckedOnlyAfterWork) {
    SourceSet set;
    std::string log;
    Source idle{[&](std::size_t) { return log += 'i', 0U; }};
    Source busy{[&](std::size_t) { return log += 'b', 1U; }};
    Source late{[&](std::size_t) { return log += 'l', 1U; }};
    for (Source* const source : {&idle, &busy, &late})
        set.add(*source);
    EXPECT_FALSE(set.drain(10, at_once).completely);
    EXPECT_EQ(log, "ib");
}

using testing::ElementsAre;

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
    EXPECT_EQ(tasks.queue.put([&] { tasks.ran.push_back(4); }, true), TaskQueue::Put::ok);
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1, 2, 4));
    EXPECT_EQ(tasks.put(5), TaskQueue::Put::first);
}

TEST(TaskQueue, TasksWithoutTimeWaitAndCount) {
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

TEST(TaskQueue, DestroysATaskBeforeTheNextOne) {
    Tasks tasks{10};
    auto held = std::make_shared<int>(1);
    std::ignore = tasks.queue.put([held] {});
    long still_held = 0;
    std::ignore = tasks.queue.put([&] { still_held = held.use_count(); });
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_EQ(still_held, 1);
}

TEST(TaskQueue, TasksStillToRunCountDuringATask) {
    Tasks tasks{3};
    std::vector<bool> taken;
    std::ignore = tasks.queue.put([&] {
        for (const int number : {3, 4})
            taken.push_back(tasks.put(number) != TaskQueue::Put::full);
    });
    std::ignore = tasks.put(1);
    std::ignore = tasks.put(2);
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(taken, ElementsAre(true, false)) << "only the slot of the running task is free";
    EXPECT_TRUE(tasks.queue.run(never));
    EXPECT_THAT(tasks.ran, ElementsAre(1, 2, 3));
}

TEST(TaskQueue, InAFullQueueEachTaskMayPostAnother) {
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

using namespace std::chrono_literals;

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

TEST(TimerQueue, ATimerThatIsAlwaysLateDoesNotDelayOthers) {
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
    TimerQueue::Node& node = queue.add(1);
    queue.timers.start(node, TimePoint::max());
    queue.fire_all(TimePoint::max());
    EXPECT_TRUE(queue.fired.empty());
    EXPECT_TRUE(node.armed());
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
} // namespace netio::loop_work_test
