// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/signals_blocked.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>
#include <utility>
#include <vector>

namespace apps {

// Signals, core files and threads of the process.

// The signals that ask a program to close in order. SIGHUP is one of them unless it is ignored
// (nohup) or blocked; a program blocks it if SIGHUP reopens the log file
// (apps/common/logging.hpp).
inline std::vector<int> end_signals() {
    std::vector<int> signals{SIGINT, SIGTERM};
    struct sigaction hang_up {};
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN &&
        ::sigismember(&blocked, SIGHUP) == 0)
        signals.push_back(SIGHUP);
    return signals;
}

// For programs that have read a key: the kernel writes no core file, and no other process of the
// same user can read the memory (ptrace(2), prctl(2)).
inline void forbid_core_dumps() noexcept {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// Starts a detached thread that handles no signals. In it, writing to a closed pipe is an error
// (EPIPE), not a SIGPIPE. Throws std::system_error if no thread can be created.
template <typename Task>
void start_thread_without_signals(Task task) {
    const netio::AllSignalsBlocked blocked;
    std::thread{std::move(task)}.detach();
}

} // namespace apps
