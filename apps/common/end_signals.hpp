// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <vector>

namespace apps {

// The signals that ask a program to end in order. SIGHUP is one of them unless it has another
// meaning: it is ignored (nohup), or blocked, because it opens the log file again
// (apps/program/program_log.hpp).
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

} // namespace apps
