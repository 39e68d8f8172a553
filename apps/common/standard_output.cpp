// SPDX-License-Identifier: Apache-2.0
#include "apps/common/standard_output.hpp"

#include "apps/common/end_signals.hpp"
#include "apps/common/takes_now.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <stdexcept>
#include <string>
#include <system_error>

namespace apps {
namespace {

constexpr const char* failure = "cannot write the report to standard output";

// The end signals that a loop has blocked, and cannot hear while nobody reads. The first one, where
// the second is waited for, is sent once more for the loop.
class EndSignals {
  public:
    explicit EndSignals(WaitUntil until) : until_{until} {
        ::sigemptyset(&wanted_);
        for (const int number : end_signals())
            ::sigaddset(&wanted_, number);
    }
    ~EndSignals() {
        if (heard_ > 0) ::kill(::getpid(), heard_);
    }
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    // Whether one has come that ends the waiting.
    bool end() {
        const timespec at_once{};
        const int number = ::sigtimedwait(&wanted_, nullptr, &at_once);
        if (number <= 0) return false;
        const bool last = until_ == WaitUntil::first_signal || heard_ > 0;
        heard_ = last ? 0 : number;
        return last;
    }

  private:
    WaitUntil until_;
    int heard_ = 0;
    sigset_t wanted_{};
};

} // namespace

void print_report(std::string_view text, WaitUntil until, int descriptor) {
    constexpr std::chrono::milliseconds between_looks{20};
    const std::size_t piece = ::isatty(descriptor) == 1 ? 256 : PIPE_BUF; // waits for nobody
    EndSignals signals{until};
    while (!text.empty()) {
        while (!takes_now(descriptor, between_looks)) {
            if (signals.end())
                throw std::runtime_error{std::string{failure} +
                                         ": nobody reads it, and a signal asks for the end"};
        }
        const ssize_t written = ::write(descriptor, text.data(), std::min(piece, text.size()));
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EAGAIN && errno != EINTR) {
            throw std::system_error{errno, std::generic_category(), failure};
        }
    }
}

} // namespace apps
