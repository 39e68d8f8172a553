// SPDX-License-Identifier: Apache-2.0
#include "apps/common/standard_error.hpp"

#include "apps/common/takes_now.hpp"

#include <pthread.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <ctime>

namespace apps {
namespace {

constexpr std::chrono::seconds patience{1};

// A reader who has gone is an error of the write, not the end of the program.
class PipeSignalBlocked {
  public:
    PipeSignalBlocked() noexcept {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~PipeSignalBlocked() {
        const timespec at_once{};
        if (::sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    PipeSignalBlocked(const PipeSignalBlocked&) = delete;
    PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

  private:
    sigset_t pipe_{};
    sigset_t before_{};
};

} // namespace

void tell_standard_error(std::string_view text) noexcept {
    if (!takes_now(STDERR_FILENO, patience)) return;
    const PipeSignalBlocked blocked;
    // More than that might wait for room.
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, text.data(), text.substr(0, PIPE_BUF).size());
}

} // namespace apps
