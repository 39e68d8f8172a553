// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/process.hpp"

#include "netio/base/check.hpp"
#include "netio/base/never_destroyed.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
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

namespace {

bool is_foreign(const struct sigaction& action) noexcept {
    const bool extended = (action.sa_flags & SA_SIGINFO) != 0;
    void* const handler = extended ? reinterpret_cast<void*>(action.sa_sigaction)
                                   : reinterpret_cast<void*>(action.sa_handler);
    Dl_info origin{};
    if (::dladdr(handler, &origin) == 0 || origin.dli_fname == nullptr) return false;
    return std::strstr(origin.dli_fname, "libinfinipath") != nullptr ||
           std::strstr(origin.dli_fname, "libpsm") != nullptr;
}

bool is_taken(int signal) noexcept {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && is_foreign(action);
}

} // namespace

void undo_foreign_signal_handlers() noexcept {
    for (const int signal : signals_that_libraries_take) {
        if (is_taken(signal)) std::signal(signal, SIG_DFL);
    }
}

KeptSignalHandlers::KeptSignalHandlers() noexcept {
    undo_foreign_signal_handlers(); // if the program has loaded the library itself
    for (std::size_t index = 0; index < before_.size(); ++index)
        ::sigaction(signals_that_libraries_take[index], nullptr, &before_[index]);
}

KeptSignalHandlers::~KeptSignalHandlers() {
    for (std::size_t index = 0; index < before_.size(); ++index) {
        const int signal = signals_that_libraries_take[index];
        if (is_taken(signal)) ::sigaction(signal, &before_[index], nullptr);
    }
}

} // namespace netio::inline v0_3
