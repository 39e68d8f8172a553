// SPDX-License-Identifier: Apache-2.0
#include "apps/common/standard_error.hpp"

#include "apps/common/printable.hpp"
#include "apps/common/takes_now.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <ctime>
#include <new>
#include <string>
#include <utility>

namespace apps {
namespace {

constexpr std::chrono::seconds patience{1};
constexpr std::size_t terminal_piece = 256; // as takes_now() says

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

// Without memory nothing is escaped, so nothing is said.
std::string shown_of(std::string_view text) noexcept {
    try {
        return printable(text, PIPE_BUF, Lines::several);
    } catch (const std::bad_alloc&) {
        return {};
    }
}

} // namespace

void tell_standard_error(std::string_view text) noexcept {
    // Of more, some might wait for room.
    const std::size_t piece = ::isatty(STDERR_FILENO) == 1 ? terminal_piece : PIPE_BUF;
    const PipeSignalBlocked blocked;
    const std::string shown = shown_of(text);
    text = shown;
    auto wait = patience;
    while (!text.empty() && takes_now(STDERR_FILENO, std::exchange(wait, {}))) {
        const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min(piece, text.size()));
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

} // namespace apps
