// SPDX-License-Identifier: Apache-2.0

// A loop inside another loop: its descriptor becomes readable when there is work, and only then.
// And objects that are destroyed in their own handler.

#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace netio::outer_loop_test {
namespace {

using namespace std::chrono_literals;
using Interest = DescriptorWatch::Interest;

constexpr int for_long = 20'000; // milliseconds, longer than any step takes
constexpr int now = 0;

bool is_readable(int fd, int within) {
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&readable, 1, within) == 1;
}

TEST(OuterLoop, IsWokenByTimersThoughItAskedForTheDescriptorOnce) {
    EventLoop loop;
    int ticks = 0;
    Timer tick{loop, [&] {
                   if (++ticks < 3) tick.start(1ms);
               }};
    tick.start(1ms);
    const int fd = loop.pollable_fd();
    while (ticks < 3) {
        ASSERT_TRUE(is_readable(fd, for_long)) << ticks;
        loop.dispatch();
    }
    EXPECT_FALSE(is_readable(fd, now)) << "no work is left";
}

TEST(OuterLoop, IsWokenAtOnceByATimerThatIsOverdue) {
    EventLoop loop;
    bool fired = false;
    Timer timer{loop, [&] { fired = true; }};
    timer.start_at(Clock::now() - 1s);
    ASSERT_TRUE(is_readable(loop.pollable_fd(), for_long));
    loop.dispatch();
    EXPECT_TRUE(fired);
}

TEST(OuterLoop, IsNotWokenByAnUnwatchedDescriptor) {
    EventLoop loop;
    const int fd = ::eventfd(1, EFD_CLOEXEC); // readable
    {
        const DescriptorWatch watch{loop, fd, Interest::readable, [] {}};
        EXPECT_TRUE(is_readable(loop.pollable_fd(), now));
    }
    loop.dispatch();
    EXPECT_FALSE(is_readable(loop.pollable_fd(), now));
    ::close(fd);
}

TEST(OuterLoop, IsNotWokenForWhatOnlyAnEarlierWatchOfADescriptorWanted) {
    EventLoop loop;
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    {
        const DescriptorWatch reader{loop, ends[0], Interest::readable, [] {}};
        {
            const DescriptorWatch writer{loop, ends[0], Interest::writable, [] {}};
            EXPECT_TRUE(is_readable(loop.pollable_fd(), now));
        }
        loop.dispatch();
        EXPECT_FALSE(is_readable(loop.pollable_fd(), now)) << "no bytes to read";
    }
    for (const int fd : ends)
        ::close(fd);
}

// --- destroyed in its own handler -----------------------------------------------------------

// A handler that destroys its owner, and reports whether its own captures still existed afterwards.
template <typename Owner>
std::function<void()> that_destroys(std::optional<Owner>& owner, std::optional<bool>& had_its_own) {
    return [&owner, &had_its_own, own = std::make_shared<int>(1)] {
        std::optional<bool>& told = had_its_own; // the captures may be destroyed after reset()
        const std::weak_ptr<int> held = own;
        owner.reset();
        told = !held.expired();
    };
}

TEST(OwnHandler, OfAWatchLivesUntilItReturns) {
    EventLoop loop;
    const int fd = ::eventfd(1, EFD_CLOEXEC);
    std::optional<DescriptorWatch> watch;
    std::optional<bool> had_its_own;
    watch.emplace(loop, fd, Interest::readable, that_destroys(watch, had_its_own));
    while (!had_its_own)
        loop.run_once(Clock::now() + 10s);
    EXPECT_TRUE(*had_its_own);
    ::close(fd);
}

TEST(OwnHandler, OfATimerLivesUntilItReturns) {
    EventLoop loop;
    std::optional<Timer> timer;
    std::optional<bool> had_its_own;
    timer.emplace(loop, that_destroys(timer, had_its_own));
    timer->start(0ms);
    while (!had_its_own)
        loop.run_once(Clock::now() + 10s);
    EXPECT_TRUE(*had_its_own);
}

// --- another thread -------------------------------------------------------------------------

void do_while_it_runs_elsewhere(EventLoop& loop, const std::function<void()>& act) {
    std::atomic<bool> runs{false};
    std::jthread runner{[&] { loop.run(); }};
    static_cast<void>(loop.post([&] { runs = true; }));
    while (!runs)
        std::this_thread::yield();
    act();
    loop.stop();
}

void add_from_another_thread() {
    EventLoop loop;
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    do_while_it_runs_elsewhere(loop, [&] {
        const DescriptorWatch watch{loop, fd, Interest::readable, [] {}};
    });
}

void remove_from_another_thread() {
    EventLoop loop;
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    std::optional<DescriptorWatch> watch;
    watch.emplace(loop, fd, Interest::readable, [] {});
    do_while_it_runs_elsewhere(loop, [&] { watch.reset(); });
}

TEST(OuterLoopDeathTest, AnotherThreadThatAddsOrRemovesASourceEndsTheProgram) {
    EXPECT_DEATH(add_from_another_thread(), "EventLoop::add");
    EXPECT_DEATH(remove_from_another_thread(), "is destroyed while another thread runs its loop");
}

} // namespace
} // namespace netio::outer_loop_test
