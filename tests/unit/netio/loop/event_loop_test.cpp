// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/event_loop.hpp"

#include "netio/base/status.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

namespace netio::event_loop_test {
namespace {

using namespace std::chrono_literals;
using test::SimWorld;
using testing::ElementsAre;

struct SimLoop {
    SimWorld world;
    EventLoop loop{EventLoop::Options{}, world};
};

TEST(EventLoop, FiresTimersInOrderOfTimeThenOfStarting) {
    SimLoop sim;
    std::vector<int> fired;
    const auto note = [&](int number) { return [&fired, number] { fired.push_back(number); }; };
    Timer a{sim.loop, note(1)};
    Timer b{sim.loop, note(2)};
    Timer c{sim.loop, note(3)};
    Timer d{sim.loop, [&] { sim.loop.stop(); }};
    c.start(10ms);
    a.start(10ms);
    b.start(5ms);
    d.start(20ms);
    const TimePoint begin = sim.world.now();
    sim.loop.run();
    EXPECT_THAT(fired, ElementsAre(2, 3, 1));
    EXPECT_EQ(sim.world.now() - begin, 20ms) << "time advances only to the timers";
}

TEST(Timer, EveryKeepsItsRateThoughEachHandlerTakesTime) {
    SimLoop sim;
    std::uint64_t calls = 0;
    const TimePoint begin = sim.world.now();
    const Timer tick = Timer::every(sim.loop, 1ms, [&] {
        ++calls;
        std::vector<EventSource*> fired;
        sim.world.wait(sim.world.now() + 400us, fired); // the duration of the handler
    });
    while (sim.world.now() < begin + 10s)
        sim.loop.run_once(begin + 10s);
    EXPECT_NEAR(static_cast<double>(calls), 10'000, 1) << "1000 per second";
}

TEST(Timer, EveryMakesUpForALateLoopWithinItsLimit) {
    SimLoop sim;
    std::uint64_t calls = 0;
    const Timer tick = Timer::every(sim.loop, 1ms, [&] { ++calls; });
    std::vector<EventSource*> fired;
    const auto calls_after_a_delay_of = [&](Duration delay) {
        const TimePoint end = sim.world.now() + delay;
        while (sim.world.now() < end)
            sim.world.wait(end, fired);
        const std::uint64_t before = calls;
        while (sim.loop.run_once())
            ;
        return calls - before;
    };
    EXPECT_EQ(calls_after_a_delay_of(50ms), 50U);
    EXPECT_EQ(calls_after_a_delay_of(10s), Timer::catch_up_limit + 1U) << "the rest is skipped";
    EXPECT_EQ(calls_after_a_delay_of(1ms), 1U);
}

TEST(Timer, EveryMayBeCancelledRestartedOrDestroyedInItsHandler) {
    SimLoop sim;
    int calls = 0;
    Timer timer{sim.loop, [&] {
                    if (++calls == 2) timer.cancel();
                }};
    timer.start_every(1ms);
    sim.loop.run_once(sim.world.now() + 1s);
    for (int i = 0; i < 10; ++i)
        sim.loop.run_once(sim.world.now() + 1ms);
    EXPECT_EQ(calls, 2);
    EXPECT_FALSE(timer.armed());
    timer.start_every(1ms);
    timer.start(5ms); // once, not periodically
    for (int i = 0; i < 20; ++i)
        sim.loop.run_once(sim.world.now() + 1ms);
    EXPECT_EQ(calls, 3);
    std::unique_ptr<Timer> other;
    other = std::make_unique<Timer>(sim.loop, [&] {
        ++calls;
        other.reset();
    });
    other->start_every(1ms);
    for (int i = 0; i < 10; ++i)
        sim.loop.run_once(sim.world.now() + 1ms);
    EXPECT_EQ(calls, 4);
    EXPECT_THROW(timer.start_every(0ms), std::invalid_argument);
}

// The time of the loop does not advance between turns, and opening a device may take seconds.
TEST(EventLoop, ATimerCountsFromItsStartAndNotFromTheLastTurn) {
    SimLoop sim;
    std::vector<EventSource*> fired;
    sim.world.wait(sim.world.now() + 10s, fired);
    const TimePoint begin = sim.world.now();
    Timer timer{sim.loop, [&] { sim.loop.stop(); }};
    timer.start(5s);
    sim.loop.run();
    EXPECT_EQ(sim.world.now() - begin, 5s);
}

TEST(EventLoop, ATimerMayBeMovedCancelledOrDestroyedInAnyHandler) {
    SimLoop sim;
    std::vector<int> fired;
    std::optional<Timer> doomed;
    Timer moved{sim.loop, [&] { fired.push_back(1); }};
    Timer cancelled{sim.loop, [&] { fired.push_back(2); }};
    Timer first{sim.loop, [&] {
                    moved.start(10ms);
                    cancelled.cancel();
                    doomed.reset();
                }};
    std::optional<Timer> suicidal;
    suicidal.emplace(sim.loop, [&] { suicidal.reset(); });
    doomed.emplace(sim.loop, [&] { fired.push_back(3); });
    Timer last{sim.loop, [&] { sim.loop.stop(); }};
    first.start(1ms);
    suicidal->start(1ms);
    moved.start(2ms);
    cancelled.start(2ms);
    doomed->start(2ms);
    last.start(20ms);
    sim.loop.run();
    EXPECT_THAT(fired, ElementsAre(1));
    EXPECT_FALSE(suicidal);
    EXPECT_FALSE(moved.armed());
}

TEST(EventLoop, ATimerThatRestartsItselfDoesNotStarveTheOthers) {
    SimLoop sim;
    int ticks = 0;
    Timer tick{sim.loop, [&] {
                   ++ticks;
                   tick.start(Duration::zero());
               }};
    tick.start(Duration::zero());
    bool posted = false;
    EXPECT_TRUE(sim.loop.post([&] {
        posted = true;
        sim.loop.stop();
    }));
    sim.loop.run();
    EXPECT_TRUE(posted);
    EXPECT_LE(ticks, 2);
    for (int i = 0; i < 10; ++i)
        sim.loop.run_once();
    EXPECT_GE(ticks, 10);
}

TEST(EventLoop, WithoutDescriptorsTheErrorNamesTheRemedy) {
    for (rlim_t more = 0; more < 3; ++more) {
        SCOPED_TRACE(more);
        const test::DescriptorLimit limit{more};
        try {
            const EventLoop loop;
            ADD_FAILURE() << "it needs three descriptors";
        } catch (const FabricError& error) {
            EXPECT_EQ(error.code().value(), EMFILE);
            EXPECT_THAT(error.what(), testing::HasSubstr("ulimit -n"));
        }
    }
}

// A source that always has work must not prevent the loop from polling others.
class Greedy final : public EventSource {
  public:
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override { return budget; }
    bool may_sleep() override { return false; }
};

TEST(EventLoop, ABusySourceDoesNotHideADescriptor) {
    EventLoop loop;
    const int fd = ::eventfd(1, EFD_CLOEXEC); // readable
    bool seen = false;
    {
        // Without a descriptor it is not added to epoll; it is only kept active.
        SimLoop sim;
        Greedy greedy;
        sim.loop.add(greedy);
        sim.loop.activate(greedy);
        bool fired = false;
        sim.world.at(sim.world.now(), [&] { fired = true; });
        for (int i = 0; i < 100 && !fired; ++i)
            sim.loop.run_once();
        EXPECT_TRUE(fired) << "a busy loop must poll from time to time";
        sim.loop.remove(greedy);
    }
    DescriptorWatch watch{loop, fd, DescriptorWatch::Interest::readable, [&] { seen = true; }};
    Timer tick{loop, [&] { tick.start(Duration::zero()); }};
    tick.start(Duration::zero());
    for (int i = 0; i < 100 && !seen; ++i)
        loop.run_once();
    EXPECT_TRUE(seen);
    ::close(fd);
}

// A spinning loop finds the work earlier, and a sleeping loop would not find it.
TEST(EventLoop, ASpinningLoopPollsAQueueWithASilentDescriptor) {
    struct Queue final : EventSource {
        int wait_fd() const noexcept override { return -1; }
        std::size_t drain(std::size_t) override { return ++looks, 0; }
        bool may_sleep() override { return true; }
        bool worth_polling() const noexcept override { return true; }
        int looks = 0;
    };
    for (const LoopMode mode : {LoopMode::blocking, LoopMode::busy, LoopMode::adaptive}) {
        SimWorld world;
        EventLoop loop{{.mode = mode}, world};
        Queue queue;
        loop.add(queue);
        loop.run_once();
        EXPECT_EQ(queue.looks, mode == LoopMode::blocking ? 1 : 2) << static_cast<int>(mode);
        loop.remove(queue);
    }
}

TEST(EventLoop, SourcesMayBeAddedAndRemovedWhileDraining) {
    struct Once final : EventSource {
        Once(SimLoop& sim_loop, std::function<void()> what) : sim{sim_loop}, act{std::move(what)} {
            sim.loop.add(*this);
        }
        ~Once() override { sim.loop.remove(*this); }
        int wait_fd() const noexcept override { return -1; }
        std::size_t drain(std::size_t) override {
            act();
            return 1;
        }
        bool may_sleep() override { return true; }
        SimLoop& sim;
        std::function<void()> act;
    };
    SimLoop sim;
    std::vector<std::string> log;
    std::unique_ptr<Once> second;
    std::unique_ptr<Once> third;
    Once first{sim, [&] {
                   log.emplace_back("first");
                   second.reset();
                   third = std::make_unique<Once>(sim, [&] { log.emplace_back("third"); });
                   sim.loop.activate(*third);
               }};
    second = std::make_unique<Once>(sim, [&] { log.emplace_back("second"); });
    sim.loop.activate(first);
    sim.loop.activate(*second);
    sim.loop.run_once();
    sim.loop.run_once();
    EXPECT_THAT(log, ElementsAre("first", "third"));
}

TEST(EventLoop, WhatWasPostedBeforeItRunsComesFirst) {
    EventLoop loop;
    std::vector<std::string> log;
    Timer timer{loop, [&] {
                    log.emplace_back("timer");
                    loop.stop();
                }};
    timer.start(Duration::zero());
    EXPECT_TRUE(loop.post([&] { log.emplace_back("first"); }));
    EXPECT_TRUE(loop.post([&] { log.emplace_back("second"); }));
    loop.run();
    EXPECT_THAT(log, ElementsAre("first", "second", "timer"));
}

// A task may own an object of the loop, and the end of a task may post another one.
TEST(EventLoop, DestroysTheTasksThatItHasNotRun) {
    const auto token = std::make_shared<int>();
    {
        EventLoop loop;
        struct Owner {
            ~Owner() {
                loop.post_always([kept = std::move(timer), own = std::move(token)] {});
            }
            EventLoop& loop;
            std::shared_ptr<Timer> timer;
            std::shared_ptr<int> token;
        };
        const auto post_owner = [&] {
            auto timer = std::make_shared<Timer>(loop, [] {});
            loop.post_always([owner = std::make_shared<Owner>(loop, std::move(timer), token)] {});
        };
        loop.post_always([&] {
            post_owner();
            loop.stop();
        });
        loop.run();
        post_owner();
        EXPECT_EQ(token.use_count(), 3);
    }
    EXPECT_EQ(token.use_count(), 1);
}

TEST(EventLoop, StopBeforeRunReturnsAtOnce) {
    EventLoop loop;
    loop.stop();
    loop.run();
}

TEST(EventLoop, KnowsItsLongestTurn) {
    SimLoop sim;
    for (const Duration time : {Duration{3ms}, Duration{70ms}, Duration{20ms}}) {
        EXPECT_TRUE(sim.loop.post([&sim, time] { sim.world.spend(time); }));
        sim.loop.run_once();
    }
    EXPECT_EQ(sim.loop.turns().longest(), 70ms);
}

TEST(EventLoop, RetiredObjectsLiveUntilTheEndOfTheTurn) {
    SimLoop sim;
    bool freed = false;
    bool alive_in_handler = false;
    struct Object final : Retired {
        explicit Object(bool& flag) : freed{flag} {}
        ~Object() override { freed = true; }
        bool& freed;
    };
    EXPECT_TRUE(sim.loop.post([&] {
        sim.loop.retire(std::make_unique<Object>(freed));
        alive_in_handler = !freed;
    }));
    sim.loop.run_once();
    EXPECT_TRUE(alive_in_handler);
    EXPECT_TRUE(freed);
}

} // namespace
} // namespace netio::event_loop_test
