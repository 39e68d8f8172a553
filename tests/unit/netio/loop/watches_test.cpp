// SPDX-License-Identifier: Apache-2.0

// Foreign descriptors and signals of the operating system as events of a real loop.

#include "netio/base/status.hpp"
#include "netio/loop/signal_watch.hpp"

#include <gmock/gmock.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

namespace netio::watches_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Interest = DescriptorWatch::Interest;

TEST(DescriptorWatch, WatchesADescriptorAndMayBeDestroyedInItsHandler) {
    EventLoop loop;
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    int fired = 0;
    std::optional<DescriptorWatch> watch;
    watch.emplace(loop, fd, Interest::readable, [&] {
        ++fired;
        watch.reset();
    });
    loop.run_once();
    EXPECT_EQ(fired, 0);
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    while (fired == 0)
        loop.run_once(Clock::now() + 10s);
    loop.run_once();
    EXPECT_EQ(fired, 1);
    ::close(fd);
}

TEST(DescriptorWatch, RefusesADescriptorThatIsNotOpen) {
    EventLoop loop;
    for (const int fd : {-1, -2, 1'000'000}) {
        try {
            const DescriptorWatch watch{loop, fd, Interest::readable, [] {}};
            ADD_FAILURE() << fd << " is not open";
        } catch (const FabricError& error) {
            EXPECT_EQ(error.code(), std::errc::bad_file_descriptor);
            EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(fd)));
        }
    }
    loop.run_once();
}

TEST(SignalWatch, TurnsSignalsIntoEvents) {
    EventLoop loop;
    std::vector<int> seen;
    {
        const SignalWatch watch{
            loop, {SIGUSR1, SIGUSR2}, [&](int signal) { seen.push_back(signal); }};
        ::raise(SIGUSR2);
        ::raise(SIGUSR1);
        while (seen.size() < 2)
            loop.run_once(Clock::now() + 10s);
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAre(SIGUSR1, SIGUSR2));
}

TEST(DescriptorWatch, OneDescriptorIsWatchedForReadingAndForWriting) {
    EventLoop loop;
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    int readable = 0;
    int writable = 0;
    const auto turn = [&] { loop.run_once(Clock::now() + 10s); };
    {
        std::optional<DescriptorWatch> reader;
        reader.emplace(loop, ends[0], Interest::readable, [&] { ++readable; });
        std::optional<DescriptorWatch> writer;
        writer.emplace(loop, ends[0], Interest::writable, [&] { ++writable; });
        turn();
        turn();
        EXPECT_EQ(readable, 0);
        EXPECT_GE(writable, 1);
        writer.reset();
        ASSERT_EQ(::write(ends[1], "x", 1), 1);
        const int before = writable;
        while (readable == 0)
            turn();
        EXPECT_EQ(writable, before);
        writer.emplace(loop, ends[0], Interest::writable, [&] { ++writable; });
        reader.reset();
        const int seen = readable;
        while (writable == before)
            turn();
        EXPECT_EQ(readable, seen) << "the byte is still unread, and no watch asks for it";
    }
    for (const int fd : ends)
        ::close(fd);
}

TEST(DescriptorWatch, ANumberMayBeUsedAgainForAnotherDescriptor) {
    EventLoop loop;
    int fired = 0;
    const int first = ::eventfd(0, EFD_CLOEXEC);
    std::optional<DescriptorWatch> old;
    old.emplace(loop, first, Interest::readable, [&] { ++fired; });
    ::close(first); // before its watch is destroyed: an error, but an easy one to make
    const int second = ::eventfd(1, EFD_CLOEXEC);
    ASSERT_EQ(second, first);
    int seen = 0;
    {
        const DescriptorWatch watch{loop, second, Interest::readable, [&] { ++seen; }};
        old.reset();
        while (seen == 0)
            loop.run_once(Clock::now() + 10s);
    }
    EXPECT_EQ(fired, 0);
    ::close(second);
}

bool is_blocked(int signal) {
    sigset_t mask{};
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, signal) == 1;
}

TEST(SignalWatch, DestroyingAnOlderOneLeavesTheYoungerOneItsSignals) {
    EventLoop loop;
    std::vector<int> seen;
    std::optional<SignalWatch> older;
    older.emplace(loop, std::vector{SIGUSR1}, [&](int signal) { seen.push_back(signal); });
    {
        const SignalWatch younger{loop, {SIGUSR2}, [&](int signal) { seen.push_back(signal); }};
        older.reset();
        EXPECT_FALSE(is_blocked(SIGUSR1));
        ASSERT_TRUE(is_blocked(SIGUSR2)) << "it would end the program";
        ::raise(SIGUSR2);
        while (seen.empty())
            loop.run_once(Clock::now() + 10s);
    }
    EXPECT_THAT(seen, ElementsAre(SIGUSR2));
    EXPECT_FALSE(is_blocked(SIGUSR2));
}

TEST(SignalWatch, ASignalThatTwoWantStaysBlockedUntilBothAreGone) {
    EventLoop loop;
    std::optional<SignalWatch> one;
    std::optional<SignalWatch> two;
    one.emplace(loop, std::vector{SIGUSR1}, [](int) {});
    two.emplace(loop, std::vector{SIGUSR1}, [](int) {});
    one.reset();
    EXPECT_TRUE(is_blocked(SIGUSR1));
    two.reset();
    EXPECT_FALSE(is_blocked(SIGUSR1));
}

TEST(SignalWatch, OneThatIsRefusedBlocksNothing) {
    EventLoop loop;
    for (const int wrong : {9999, NSIG, 0, -1}) {
        EXPECT_THROW(SignalWatch(loop, {SIGUSR1, wrong}, [](int) {}), FabricError) << wrong;
        EXPECT_FALSE(is_blocked(SIGUSR1)) << wrong;
    }
    {
        const SignalWatch good{loop, {SIGUSR1}, [](int) {}};
        EXPECT_TRUE(is_blocked(SIGUSR1));
    }
    EXPECT_FALSE(is_blocked(SIGUSR1)) << "no other signal is blocked";
}

TEST(SignalWatch, WhatTheUserHasBlockedStaysBlocked) {
    EventLoop loop;
    sigset_t mine{};
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mine, nullptr);
    {
        const SignalWatch watch{loop, {SIGUSR1}, [](int) {}};
    }
    EXPECT_TRUE(is_blocked(SIGUSR1));
    pthread_sigmask(SIG_UNBLOCK, &mine, nullptr);
}

} // namespace
} // namespace netio::watches_test
