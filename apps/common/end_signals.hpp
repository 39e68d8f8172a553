// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <vector>

namespace apps {

// The signals that ask a program to end in order. The terminal's hang-up is one of them, unless who
// started the program wants it to go on without a terminal (nohup).
inline std::vector<int> end_signals() {
    std::vector<int> signals{SIGINT, SIGTERM};
    struct sigaction hang_up {};
    if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
        signals.push_back(SIGHUP);
    return signals;
}

} // namespace apps
