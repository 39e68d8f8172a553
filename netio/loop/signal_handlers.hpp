// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace netio::inline v0_3 {

// Debian's libfabric loads libinfinipath, whose constructor installs handlers for crashes and for
// SIGINT and SIGTERM in every process; with them even SIGTERM ends as a backtrace and status 1.
inline constexpr std::array signals_that_libraries_take{SIGSEGV, SIGBUS,  SIGILL, SIGABRT,
                                                        SIGINT,  SIGTERM, SIGFPE};

// Puts back the default for those signals whose handler lies in that library, and only those.
void undo_foreign_signal_handlers() noexcept;

// While libfabric is loaded. What the program had installed for a signal that the library took is
// there again afterwards.
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
