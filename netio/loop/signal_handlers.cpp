// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/signal_handlers.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <dlfcn.h>

namespace netio::inline v0_2 {

void undo_foreign_signal_handlers() noexcept {
    constexpr std::array signals{SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGFPE};
    for (const int signal : signals) {
        struct sigaction action {};
        if (::sigaction(signal, nullptr, &action) != 0) continue;
        const bool extended = (action.sa_flags & SA_SIGINFO) != 0;
        void* const handler = extended ? reinterpret_cast<void*>(action.sa_sigaction)
                                       : reinterpret_cast<void*>(action.sa_handler);
        Dl_info origin{};
        if (::dladdr(handler, &origin) == 0 || origin.dli_fname == nullptr) continue;
        if (std::strstr(origin.dli_fname, "libinfinipath") == nullptr &&
            std::strstr(origin.dli_fname, "libpsm") == nullptr) {
            continue;
        }
        std::signal(signal, SIG_DFL);
    }
}

} // namespace netio::inline v0_2
