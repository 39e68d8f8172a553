// SPDX-License-Identifier: Apache-2.0

// The cost of an idle real loop, in wake-ups; and no event is lost, including events from another
// thread.

#include "netio/loop/event_loop.hpp"

#include <gtest/gtest.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>

namespace netio::idle_loop_test {
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
                EXPECT_TRUE(loop.post([&] {
                    ++done;
                    seen.store(done);
                }));
                // From time to time, wait until the loop has caught up, so that it goes to sleep.
                if (i % 100 == 0)
                    while (seen.load() < i)
                        std::this_thread::yield();
            }
            EXPECT_TRUE(loop.post([&] { loop.stop(); }));
        }};
        loop.run();
        other.join();
        EXPECT_EQ(done, count);
    }
}

TEST(IdleLoop, StopFromAnotherThreadEndsASleepingLoop) {
    EventLoop loop;
    std::atomic<bool> running{false};
    EXPECT_TRUE(loop.post([&] { running.store(true); }));
    std::thread other{[&] {
        while (!running.load())
            std::this_thread::yield();
        loop.stop();
    }};
    loop.run();
    other.join();
}

TEST(IdleLoop, AnAdaptiveLoopSleepsAfterItsSpin) {
    EventLoop loop{{.mode = LoopMode::adaptive, .spin = 100us}};
    Timer end{loop, [&] { loop.stop(); }};
    end.start(200ms);
    const std::uint64_t before = loop.wait_count();
    loop.run();
    // A spinning loop would have hundreds of thousands.
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
            other = std::thread{[&] { EXPECT_TRUE(loop.post([&] { posted = true; })); }};
        }
    }
    other.join();
    EXPECT_LE(wake_ups, 100) << "it is readable only when there is work";
}

// Makes one system call fail in the calling thread, as with an old kernel or in a sandbox.
bool forbid(unsigned call, unsigned error) {
    std::array<sock_filter, 4> filter{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(IdleLoop, SleepsAsFinelyOnKernelsWithoutEpollPwait2) {
    for (const int error : {ENOSYS, EPERM}) {
        std::thread sandbox{[&] {
            ASSERT_TRUE(forbid(SYS_epoll_pwait2, static_cast<unsigned>(error)));
            EventLoop loop;
            int ticks = 0;
            Timer tick{loop, [&] {
                           if (++ticks == 20) return loop.stop();
                           tick.start(500us);
                       }};
            tick.start(500us);
            loop.run();
            EXPECT_EQ(ticks, 20);
            EXPECT_LE(loop.wait_count(), 60U) << "it sleeps between its timers";
        }};
        sandbox.join();
    }
}

} // namespace
} // namespace netio::idle_loop_test
