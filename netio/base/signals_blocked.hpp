// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace netio::inline v0_3 {

// Blocks all signals in the calling thread while this object lives. A thread inherits the mask of
// the thread that starts it, so a thread that is started during this time receives no signal of the
// process: the program's own threads handle them.
class AllSignalsBlocked {
  public:
    AllSignalsBlocked() noexcept {
        sigset_t all{};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    AllSignalsBlocked(const AllSignalsBlocked&) = delete;
    AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

} // namespace netio::inline v0_3
