// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace netio::inline v0_3 {

// Debian's libfabric loads libinfinipath, whose constructor installs handlers for crashes and for
// SIGINT and SIGTERM in every process. With them, even SIGTERM ends in a backtrace and status 1.
inline constexpr std::array signals_that_libraries_take{SIGSEGV, SIGBUS,  SIGILL, SIGABRT,
                                                        SIGINT,  SIGTERM, SIGFPE};

// Restores the default for those signals whose handler lies in that library, and only for those.
void undo_foreign_signal_handlers() noexcept;

// To be kept while libfabric is loaded. The destructor restores the program's handlers of the
// signals that the library has replaced.
class KeptSignalHandlers {
  public:
    KeptSignalHandlers() noexcept;
    ~KeptSignalHandlers();
    KeptSignalHandlers(const KeptSignalHandlers&) = delete;
    KeptSignalHandlers& operator=(const KeptSignalHandlers&) = delete;

  private:
    std::array<struct sigaction, signals_that_libraries_take.size()> before_{};
};

} // namespace netio::inline v0_3
