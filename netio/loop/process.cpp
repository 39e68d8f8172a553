// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/process.hpp"

#include "netio/base/check.hpp"
#include "netio/base/never_destroyed.hpp"

#include <chrono>
#include <memory>
#include <pthread.h>
#include <shared_mutex>
#include <string>
#include <utility>

namespace netio::inline v0_3 {
namespace {

std::atomic<unsigned> generation{0};

// How long fork() waits at most: a library that forks inside a blocked section would wait for
// itself.
constexpr std::chrono::seconds fork_wait{3};

struct ForkLock {
    std::shared_timed_mutex mutex;
    bool held = false; // by the thread that forks

    void begin() { held = mutex.try_lock_for(fork_wait); }
    void end() {
        if (std::exchange(held, false)) mutex.unlock();
    }
};

ForkLock& fork_lock() {
    static NeverDestroyed<ForkLock> lock;
    return *lock;
}

// Registers the handlers around each fork() of this process, at the first call.
void watch_forks() noexcept {
    [[maybe_unused]] static const int registered =
        ::pthread_atfork([] { fork_lock().begin(); }, [] { fork_lock().end(); },
                         [] {
                             generation.fetch_add(1, std::memory_order_relaxed);
                             // Constructs a new lock: a thread of the parent may hold the old one,
                             // and the child lacks that thread.
                             std::construct_at(&fork_lock());
                         });
}

} // namespace

unsigned process_generation() noexcept {
    watch_forks();
    return generation.load(std::memory_order_relaxed);
}

void refuse_inherited(const char* what) noexcept {
    const std::string rule =
        std::string{what} +
        " is used in a child process that has inherited it by fork(); create loops, sockets and "
        "clients in the process that uses them, after fork()";
    detail::misused(rule.c_str());
}

ForkBlocked::ForkBlocked() noexcept {
    watch_forks();
    fork_lock().mutex.lock_shared();
}

ForkBlocked::~ForkBlocked() {
    fork_lock().mutex.unlock_shared();
}

} // namespace netio::inline v0_3
