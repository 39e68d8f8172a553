// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace apps {

// Starts a detached thread that handles no signal of the program. In it a reader that is gone is an
// error of the write (EPIPE), not a SIGPIPE. Throws std::system_error: the system grants no thread.
template <typename Task>
void start_thread_without_signals(Task task) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    try {
        std::thread{std::move(task)}.detach();
    } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace apps
