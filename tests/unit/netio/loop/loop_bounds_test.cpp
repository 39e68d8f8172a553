// SPDX-License-Identifier: Apache-2.0

// Guarantees of an event loop with too much work: the maximum duration of a turn, the order of
// sources, when it polls, and what it knows of the time in which it did not poll.

#include "netio/loop/event_loop.hpp"
#include "netio/session/drain_timer.hpp"

#include <gmock/gmock.h>

#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace netio::loop_bounds_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

// A clock and sources that the test controls.
class ManualPoller final : public Poller {
  public:
    TimePoint now() override { return time; }
    void add(EventSource&) override {}
    void remove(EventSource& source) override { std::erase(ready, &source); }
    void wait(TimePoint deadline, std::vector<EventSource*>& fired) override {
        ++waits;
        if (ready.empty() && deadline != TimePoint::max()) time = std::max(time, deadline);
        time += std::exchange(stopped_for, 0s);
        fired.insert(fired.end(), ready.begin(), ready.end());
        ready.clear();
    }
    void wake() noexcept override {}
    int pollable_fd(TimePoint) override { return -1; }

    TimePoint time{1h};
    Duration stopped_for{0}; // in the next wait
    std::vector<EventSource*> ready;
    std::size_t waits = 0;
};

struct ManualLoop {
    ManualPoller poller;
    EventLoop loop{EventLoop::Options{}, poller};
};

// Always has work; each piece of work takes some time.
class Busy final : public EventSource {
  public:
    Busy(ManualLoop& bed, Duration piece) : bed_{bed}, piece_{piece} { bed_.loop.add(*this); }
    ~Busy() override { bed_.loop.remove(*this); }
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override {
        std::size_t work = 0;
        while (work < budget) {
            ++work;
            ++pieces;
            bed_.poller.time += piece_;
            if (bed_.loop.time_is_up()) break;
        }
        return work;
    }
    bool may_sleep() override { return false; }

    std::size_t pieces = 0;

  private:
    ManualLoop& bed_;
    Duration piece_;
};

TEST(LoopBounds, ATurnEndsWhenItsTimeIsUp) {
    ManualLoop bed;
    const Busy source{bed, 300us};
    const TimePoint begin = bed.poller.time;
    bed.loop.run_once();
    EXPECT_EQ(source.pieces, 4U);
    EXPECT_EQ(bed.poller.time - begin, 1200us);
}

TEST(LoopBounds, ATurnEndsWhenItHasDoneEnough) {
    ManualLoop bed;
    const Busy source{bed, 0us};
    bed.loop.run_once();
    EXPECT_EQ(source.pieces, EventLoop::Options{}.drain_limit);
}

TEST(LoopBounds, TheNextTurnBeginsWithTheSourcesNotServed) {
    ManualLoop bed;
    const Busy one{bed, 2ms};
    const Busy two{bed, 2ms};
    const Busy three{bed, 2ms};
    for (int turn = 0; turn < 9; ++turn)
        bed.loop.run_once();
    EXPECT_EQ(one.pieces, 3U);
    EXPECT_EQ(two.pieces, 3U);
    EXPECT_EQ(three.pieces, 3U);
}

TEST(LoopBounds, TimersAndTasksRunDespiteABusySource) {
    ManualLoop bed;
    const Busy source{bed, 5ms};
    std::vector<int> fired;
    Timer first{bed.loop, [&] { fired.push_back(1); }};
    Timer second{bed.loop, [&] { fired.push_back(2); }};
    first.start(0ms);
    second.start(0ms);
    EXPECT_TRUE(bed.loop.post([&] { fired.push_back(0); }));
    bed.loop.run_once();
    EXPECT_THAT(fired, ElementsAre(0, 1, 2));
}

TEST(LoopBounds, SlowTimersAndTasksEndATurnToo) {
    ManualLoop bed;
    std::vector<int> log;
    std::deque<Timer> timers;
    for (int i = 0; i < 3; ++i) {
        timers.emplace_back(bed.loop, [&] {
            log.push_back(1);
            bed.poller.time += 2ms;
        });
        timers.back().start(0ms);
        EXPECT_TRUE(bed.loop.post([&] {
            log.push_back(0);
            bed.poller.time += 2ms;
        }));
    }
    bed.loop.run_once();
    EXPECT_THAT(log, ElementsAre(0, 1));
    bed.loop.run_once();
    bed.loop.run_once();
    EXPECT_THAT(log, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(LoopBounds, PollsItsDescriptorsByTimeHoweverBusyItIs) {
    ManualLoop bed;
    const Busy source{bed, 2ms};
    bed.loop.run_once();
    const std::size_t before = bed.poller.waits;
    for (int turn = 0; turn < 10; ++turn)
        bed.loop.run_once();
    EXPECT_EQ(bed.poller.waits - before, 10U) << "each turn took longer than its limit";
}

TEST(LoopBounds, PostReportsThatTooManyTasksWait) {
    ManualPoller poller;
    EventLoop loop{{.post_limit = 2}, poller};
    int ran = 0;
    EXPECT_TRUE(loop.post([&] { ++ran; }));
    EXPECT_TRUE(loop.post([&] { ++ran; }));
    EXPECT_FALSE(loop.post([&] { ++ran; }));
    loop.run_once();
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(loop.post([&] { ++ran; }));
}

// --- stopping and being embedded --------------------------------------------------------------

TEST(LoopBounds, DispatchStopsAtItsTimeLimitAndStaysReadable) {
    EventLoop loop;
    bool endless = true;
    Timer tick{loop, [&] {
                   if (endless) tick.start(0ms);
               }};
    tick.start(0ms);
    EXPECT_TRUE(loop.dispatch(1ms));
    pollfd readable{.fd = loop.pollable_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&readable, 1, 0), 1) << "the outer loop must call again";
    endless = false;
    EXPECT_FALSE(loop.dispatch(1h));
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
}

TEST(LoopBounds, StopEndsADispatchAndDoesNotAffectTheNextOne) {
    EventLoop loop;
    Timer tick{loop, [&] {
                   loop.stop();
                   tick.start(0ms);
               }};
    tick.start(0ms);
    EXPECT_TRUE(loop.dispatch(1h));
    tick.cancel();
    int ran = 0;
    Timer end{loop, [&] {
                  ++ran;
                  loop.stop();
              }};
    end.start(0ms);
    loop.run();
    EXPECT_EQ(ran, 1) << "run() must not end because of a stop during dispatch()";
}

TEST(LoopBounds, StopKeepsOneRunOnceFromWaitingAndNotTheNext) {
    ManualLoop bed;
    const TimePoint begin = bed.poller.time;
    bed.loop.stop();
    bed.loop.run_once(begin + 1s);
    EXPECT_EQ(bed.poller.time, begin);
    bed.loop.run_once(begin + 1s);
    EXPECT_EQ(bed.poller.time, begin + 1s);
}

// --- time without polling ----------------------------------------------------------------------

TEST(LoopBounds, KnowsHowLongAHandlerKeptItFromLooking) {
    ManualLoop bed;
    EXPECT_TRUE(bed.loop.post([&] { bed.poller.time += 40s; }));
    bed.loop.run_once();
    bed.loop.run_once();
    EXPECT_EQ(bed.loop.stalled(), 40s - PollTracker::tolerance);
    for (int i = 0; i < 100; ++i)
        bed.loop.run_once(bed.poller.time + 10s);
    EXPECT_EQ(bed.loop.stalled(), 40s - PollTracker::tolerance) << "sleeping is not a stall";
}

// The timer expires while a handler runs for 40 s.
TEST(LoopBounds, AStallAwareTimerWaitsItsFullTimeAndNoLonger) {
    for (const Duration before : {1s, 9s}) {
        ManualLoop bed;
        const TimePoint begin = bed.poller.time;
        TimePoint fired{};
        StallAwareTimer patient{bed.loop, [&] { fired = bed.poller.time; }};
        patient.start(10s);
        Timer busy{bed.loop, [&] { bed.poller.time += 40s; }};
        busy.start_at(begin + before);
        while (fired == TimePoint{} && bed.poller.time < begin + 200s)
            bed.loop.run_once(bed.poller.time + 1s);
        EXPECT_EQ(fired - begin, 50s - PollTracker::tolerance);
    }
}

TEST(LoopBounds, KnowsHowLongTheProcessWasStopped) {
    ManualLoop bed;
    Timer heartbeat{bed.loop, [] {}};
    heartbeat.start(5s);
    bed.poller.stopped_for = 40s;
    bed.loop.run_once(TimePoint::max());
    EXPECT_FALSE(heartbeat.armed());
    EXPECT_EQ(bed.loop.stalled(), 40s - PollTracker::tolerance);
}

TEST(LoopBounds, ALateTimerFiresAfterArrivedEvents) {
    struct Once final : EventSource {
        explicit Once(std::function<void()> what) : act{std::move(what)} {}
        int wait_fd() const noexcept override { return -1; }
        std::size_t drain(std::size_t) override {
            if (!std::exchange(waited, true)) return 0;
            act();
            return 1;
        }
        bool may_sleep() override { return true; }
        std::function<void()> act;
        bool waited = false;
    };
    ManualLoop bed;
    std::vector<std::string> log;
    Once source{[&] { log.emplace_back("message"); }};
    bed.loop.add(source);
    Timer judge{bed.loop, [&] { log.emplace_back("judge"); }};
    judge.start(5s);
    bed.loop.run_once();
    bed.poller.ready.push_back(&source);
    bed.poller.stopped_for = 40s;
    bed.loop.run_once(TimePoint::max());
    EXPECT_THAT(log, ElementsAre("message", "judge"));
    bed.loop.remove(source);
}

TEST(LoopBounds, HasCaughtUpWhenNothingIsLeftOnly) {
    ManualLoop bed;
    const TimePoint begin = bed.poller.time;
    {
        const Busy source{bed, 2ms};
        for (int i = 0; i < 10; ++i)
            bed.loop.run_once();
        EXPECT_EQ(bed.loop.caught_up(), begin);
    }
    bed.loop.run_once(bed.poller.time + 1s);
    EXPECT_EQ(bed.loop.caught_up(), bed.poller.time);
}

// --- misuse -----------------------------------------------------------------------------------

TEST(LoopBounds, RefusesOptionsThatMakeNoSense) {
    EXPECT_THROW(EventLoop({.drain_limit = 0}), std::invalid_argument);
    EXPECT_THROW(EventLoop({.turn_limit = 0us}), std::invalid_argument);
    EXPECT_THROW(EventLoop({.turn_limit = std::chrono::microseconds::max()}),
                 std::invalid_argument);
    EXPECT_THROW(EventLoop({.spin = -1us}), std::invalid_argument);
    EXPECT_THROW(EventLoop({.spin = std::chrono::microseconds::max()}), std::invalid_argument);
    EXPECT_THROW(EventLoop({.post_limit = 0}), std::invalid_argument);
}

TEST(LoopBounds, ATimerOfForeverNeverFires) {
    ManualLoop bed;
    bool fired = false;
    Timer never{bed.loop, [&] { fired = true; }};
    const auto start = [&](int unit) {
        if (unit == 0) never.start(Duration::max());
        if (unit == 1) never.start(std::chrono::microseconds::max());
        if (unit == 2) never.start(std::chrono::milliseconds::max());
        if (unit == 3) never.start(std::chrono::seconds::max());
    };
    for (int unit = 0; unit < 4; ++unit) {
        const TimePoint begin = bed.poller.time;
        start(unit);
        for (int i = 0; i < 10; ++i)
            bed.loop.run_once(bed.poller.time + 24h);
        EXPECT_FALSE(fired);
        EXPECT_TRUE(never.armed());
        EXPECT_EQ(bed.poller.time - begin, 240h);
    }
}

void run_a_handler_that_throws() {
    EventLoop loop;
    Timer timer{loop, [] { throw std::runtime_error{"thrown by a handler"}; }};
    timer.start(0ms);
    try {
        loop.run();
    } catch (const std::exception&) {
        std::abort(); // the exception must not leave run()
    }
}

TEST(LoopBoundsDeathTest, AnExceptionThatLeavesAHandlerEndsTheProgram) {
    EXPECT_DEATH(run_a_handler_that_throws(), "thrown by a handler");
}

void run_in_a_handler() {
    EventLoop loop;
    Timer timer{loop, [&] { loop.run(); }};
    timer.start(0ms);
    loop.run();
}

TEST(LoopBoundsDeathTest, ARunInAHandlerIsNamed) {
    EXPECT_DEATH(run_in_a_handler(), "is called while the loop runs: in one of its handlers");
}

void destroy_a_loop_before_its_timer() {
    auto loop = std::make_unique<EventLoop>();
    const Timer timer{*loop, [] {}};
    loop.reset();
}

TEST(LoopBoundsDeathTest, ATimerMustNotOutliveItsLoop) {
    EXPECT_DEATH(destroy_a_loop_before_its_timer(), "timers must be destroyed before their loop");
}

void start_a_timer_of_a_loop_that_runs_elsewhere() {
    EventLoop loop;
    Timer timer{loop, [] {}};
    std::atomic<bool> runs{false};
    std::jthread runner{[&] { loop.run(); }};
    static_cast<void>(loop.post([&] { runs = true; }));
    while (!runs)
        std::this_thread::yield();
    timer.start(1h);
}

TEST(LoopBoundsDeathTest, AnotherThreadThatDoesMoreThanPostOrStopEndsTheProgram) {
    EXPECT_DEATH(start_a_timer_of_a_loop_that_runs_elsewhere(), "from another thread");
}

TEST(LoopBounds, WhatIsRetiredWhileTheLoopIsDestroyedIsFreed) {
    struct Chain final : Retired {
        Chain(EventLoop& its_loop, int& count, int more)
            : loop{its_loop}, freed{count}, left{more} {}
        ~Chain() override {
            ++freed;
            if (left > 0) loop.retire(std::make_unique<Chain>(loop, freed, left - 1));
        }
        EventLoop& loop;
        int& freed;
        int left;
    };
    int freed = 0;
    {
        EventLoop loop;
        loop.retire(std::make_unique<Chain>(loop, freed, 2));
    }
    EXPECT_EQ(freed, 3);
}

} // namespace
} // namespace netio::loop_bounds_test
