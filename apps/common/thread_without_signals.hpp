// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/signals_blocked.hpp"

#include <thread>
#include <utility>

namespace apps {

// Starts a detached thread that handles no signal of the program. In it a reader that is gone is an
// error of the write (EPIPE), not a SIGPIPE. Throws std::system_error: the system grants no thread.
template <typename Task>
void start_thread_without_signals(Task task) {
    const netio::AllSignalsBlocked blocked;
    std::thread{std::move(task)}.detach();
}

} // namespace apps
