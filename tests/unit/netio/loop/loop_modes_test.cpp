// SPDX-License-Identifier: Apache-2.0

// When a loop sleeps in each mode, what wakes it, and what a turn returns. Each query of the clock
// advances it by one microsecond.

#include "netio/base/option_check.hpp"
#include "netio/loop/event_loop.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace netio::loop_modes_test {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

class TickingPoller final : public Poller {
  public:
    TimePoint now() override { return time += 1us; }
    void add(EventSource&) override {}
    void remove(EventSource&) override {}
    void wait(TimePoint deadline, std::vector<EventSource*>&) override {
        if (deadline <= time) return;
        sleeps.push_back(time);
        time = deadline;
    }
    void wake() noexcept override { ++wakes; }
    int pollable_fd(TimePoint) override { return -1; }

    TimePoint time{1h};
    std::vector<TimePoint> sleeps; // start time of each
    int wakes = 0;
};

class LoopModes : public testing::Test {
  protected:
    // Runs for 5 ms; after half of it, a timer fires at `fired`.
    void run(LoopMode mode) {
        EventLoop loop{{.mode = mode, .spin = 100us}, poller};
        Timer middle{loop, [&] { fired = poller.time; }};
        Timer end{loop, [&] { loop.stop(); }};
        begin = poller.time;
        middle.start_at(begin + 2500us);
        end.start_at(begin + 5ms);
        loop.run();
        EXPECT_EQ(loop.wait_count(), poller.sleeps.size());
    }
    TickingPoller poller;
    TimePoint begin, fired;
};

TEST_F(LoopModes, ABusyLoopNeverSleeps) {
    run(LoopMode::busy);
    EXPECT_THAT(poller.sleeps, IsEmpty());
}

TEST_F(LoopModes, ABlockingLoopSleepsAtOnceAndUntilATimerIsDue) {
    run(LoopMode::blocking);
    ASSERT_THAT(poller.sleeps, SizeIs(2));
    EXPECT_LE(poller.sleeps[0] - begin, 50us);
    EXPECT_LE(fired - begin, 2550us);
    EXPECT_LE(poller.sleeps[1] - fired, 50us);
}

TEST_F(LoopModes, AnAdaptiveLoopSpinsAfterItsStartAndEachWakeUp) {
    run(LoopMode::adaptive);
    ASSERT_THAT(poller.sleeps, SizeIs(2));
    for (const Duration spun : {poller.sleeps[0] - begin, poller.sleeps[1] - fired}) {
        EXPECT_GE(spun, 90us);
        EXPECT_LE(spun, 150us);
    }
}

// --- wake-ups --------------------------------------------------------------------------------

TEST_F(LoopModes, AStopAndTheFirstOfSeveralTasksWakeIt) {
    EventLoop loop{{}, poller};
    loop.stop();
    EXPECT_EQ(poller.wakes, 1);
    EXPECT_TRUE(loop.post([] {}));
    EXPECT_EQ(poller.wakes, 2);
    EXPECT_TRUE(loop.post([] {}));
    EXPECT_EQ(poller.wakes, 2);
}

TEST_F(LoopModes, ATaskThatSomethingRetiredPostsKeepsItFromSleeping) {
    struct Last final : Retired {
        explicit Last(std::function<void()> what) : act{std::move(what)} {}
        ~Last() override { act(); }
        std::function<void()> act;
    };
    EventLoop loop{{}, poller};
    bool ran = false;
    loop.retire(std::make_unique<Last>([&] { EXPECT_TRUE(loop.post([&] { ran = true; })); }));
    loop.run_once(poller.time + 1h);
    EXPECT_TRUE(ran);
    EXPECT_THAT(poller.sleeps, IsEmpty());
}

// --- the result of a turn --------------------------------------------------------------------

struct Source final : EventSource {
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override { return act ? act(budget) : 0; }
    bool may_sleep() override { return sleepy; }
    std::function<std::size_t(std::size_t)> act;
    bool sleepy = true;
};

TEST_F(LoopModes, ATurnReportsWhetherItDidAnyWork) {
    EventLoop loop{{}, poller};
    EXPECT_FALSE(loop.run_once());
    EXPECT_TRUE(loop.post([] {}));
    EXPECT_TRUE(loop.run_once()) << "a task";
    EXPECT_FALSE(loop.run_once());
    Timer timer{loop, [] {}};
    timer.start(Duration::zero());
    EXPECT_TRUE(loop.run_once()) << "a timer";
    EXPECT_FALSE(loop.run_once());
    Source source;
    loop.add(source);
    source.act = [](std::size_t) { return std::size_t{1}; };
    EXPECT_TRUE(loop.run_once()) << "a source";
    source.act = nullptr;
    source.sleepy = false;
    loop.activate(source);
    EXPECT_FALSE(loop.run_once()) << "a source that is busy otherwise";
    loop.remove(source);
}

TEST_F(LoopModes, SourcesAndTimersRunAfterALongTask) {
    EventLoop loop{{}, poller}; // turns of 1 ms each
    int pieces = 0;
    Source source;
    source.sleepy = false;
    source.act = [&](std::size_t budget) {
        std::size_t work = 0;
        do {
            ++work;
            ++pieces;
            poller.time += 300us;
        } while (work < budget && !loop.time_is_up());
        return work;
    };
    loop.add(source);
    int fired_count = 0;
    Timer one{loop, [&] { ++fired_count; }};
    Timer other{loop, [&] { ++fired_count; }};
    one.start(Duration::zero());
    other.start(Duration::zero());
    EXPECT_TRUE(loop.post([&] { poller.time += 5ms; }));
    loop.run_once();
    EXPECT_EQ(pieces, 4);
    EXPECT_EQ(fired_count, 2);
    loop.remove(source);
}

TEST_F(LoopModes, OptionsHaveTheDocumentedLimits) {
    for (const std::chrono::microseconds good : {0us, 1us, std::chrono::microseconds{longest_time}})
        EXPECT_NO_THROW(EventLoop({.spin = good}, poller)) << good.count();
    for (const std::chrono::microseconds good : {1us, std::chrono::microseconds{longest_time}})
        EXPECT_NO_THROW(EventLoop({.turn_limit = good}, poller)) << good.count();
    const std::chrono::microseconds too_long = longest_time + 1us;
    EXPECT_THROW(EventLoop({.spin = too_long}, poller), std::invalid_argument);
    EXPECT_THROW(EventLoop({.turn_limit = too_long}, poller), std::invalid_argument);
    EXPECT_NO_THROW(EventLoop({.drain_limit = 1, .post_limit = 1}, poller));
}

} // namespace
} // namespace netio::loop_modes_test
