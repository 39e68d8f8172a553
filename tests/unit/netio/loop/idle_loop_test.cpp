// SPDX-License-Identifier: Apache-2.0

// What a real loop costs when nothing happens, counted in wake-ups, and that nothing is lost when
// something does, also from another thread.

#include "netio/loop/event_loop.hpp"

#include <gtest/gtest.h>

#include <poll.h>

#include <atomic>
#include <thread>

namespace netio {
namespace {

using namespace std::chrono_literals;

TEST(IdleLoop, ABlockingLoopWakesUpForItsTimersOnly) {
    EventLoop loop;
    int ticks = 0;
    Timer tick{loop, [&] {
                   if (++ticks == 20) return loop.stop();
                   tick.start(5ms);
               }};
    tick.start(5ms);
    const std::uint64_t before = loop.wait_count();
    loop.run();
    EXPECT_GE(loop.wait_count() - before, 20U);
    EXPECT_LE(loop.wait_count() - before, 45U);
}

TEST(IdleLoop, NoWakeUpIsLostBetweenThreads) {
    for (const LoopMode mode : {LoopMode::blocking, LoopMode::adaptive, LoopMode::busy}) {
        EventLoop loop{{.mode = mode}};
        constexpr int count = 20000;
        int done = 0;
        std::atomic<int> seen{0};
        std::thread other{[&] {
            for (int i = 0; i < count; ++i) {
                loop.post([&] {
                    ++done;
                    seen.store(done);
                });
                // Now and then wait until the loop has caught up, so that it goes to sleep.
                if (i % 100 == 0)
                    while (seen.load() < i)
                        std::this_thread::yield();
            }
            loop.post([&] { loop.stop(); });
        }};
        loop.run();
        other.join();
        EXPECT_EQ(done, count);
    }
}

TEST(IdleLoop, StopFromAnotherThreadEndsASleepingLoop) {
    EventLoop loop;
    std::atomic<bool> running{false};
    loop.post([&] { running.store(true); });
    std::thread other{[&] {
        while (!running.load())
            std::this_thread::yield();
        loop.stop();
    }};
    loop.run();
    other.join();
    SUCCEED();
}

TEST(IdleLoop, AnAdaptiveLoopSleepsAfterItsSpin) {
    EventLoop loop{{.mode = LoopMode::adaptive, .spin = 100us}};
    Timer end{loop, [&] { loop.stop(); }};
    end.start(200ms);
    const std::uint64_t before = loop.wait_count();
    loop.run();
    // Spinning it would be hundreds of thousands.
    EXPECT_LE(loop.wait_count() - before, 2000U);
}

TEST(IdleLoop, LivesInsideAnotherLoop) {
    EventLoop loop;
    int ticks = 0;
    bool posted = false;
    Timer tick{loop, [&] {
                   ++ticks;
                   tick.start(2ms);
               }};
    tick.start(2ms);
    std::thread other;
    loop.dispatch();
    int wake_ups = 0;
    while (ticks < 10 || !posted) {
        pollfd readable{.fd = loop.pollable_fd(), .events = POLLIN, .revents = 0};
        ASSERT_EQ(::poll(&readable, 1, 20000), 1) << "the descriptor must become readable";
        loop.dispatch();
        ++wake_ups;
        if (ticks == 5 && !other.joinable()) {
            other = std::thread{[&] { loop.post([&] { posted = true; }); }};
        }
    }
    other.join();
    EXPECT_LE(wake_ups, 100) << "it is readable only when there is something to do";
}

} // namespace
} // namespace netio
