// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether something may be written without waiting for who reads it.

#include <poll.h>

#include <cerrno>
#include <chrono>

namespace apps {

// Whether a write of a line to it waits for nobody, now or within the patience: a pipe then has
// room for PIPE_BUF bytes, a terminal for 256. Not true of a terminal that is stopped (Ctrl-S).
// What cannot be written at all says so at once when it is tried.
inline bool takes_now(int descriptor, std::chrono::milliseconds patience = {}) noexcept {
    pollfd asked{.fd = descriptor, .events = POLLOUT, .revents = 0};
    int ready = 0;
    do {
        ready = ::poll(&asked, 1, static_cast<int>(patience.count()));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

} // namespace apps
