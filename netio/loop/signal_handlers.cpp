// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/signal_handlers.hpp"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>

namespace netio::inline v0_3 {
namespace {

bool is_foreign(const struct sigaction& action) noexcept {
    const bool extended = (action.sa_flags & SA_SIGINFO) != 0;
    void* const handler = extended ? reinterpret_cast<void*>(action.sa_sigaction)
                                   : reinterpret_cast<void*>(action.sa_handler);
    Dl_info origin{};
    if (::dladdr(handler, &origin) == 0 || origin.dli_fname == nullptr) return false;
    return std::strstr(origin.dli_fname, "libinfinipath") != nullptr ||
           std::strstr(origin.dli_fname, "libpsm") != nullptr;
}

bool is_taken(int signal) noexcept {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && is_foreign(action);
}

} // namespace

void undo_foreign_signal_handlers() noexcept {
    for (const int signal : signals_that_libraries_take) {
        if (is_taken(signal)) std::signal(signal, SIG_DFL);
    }
}

KeptSignalHandlers::KeptSignalHandlers() noexcept {
    undo_foreign_signal_handlers(); // if the program has loaded the library itself
    for (std::size_t index = 0; index < before_.size(); ++index)
        ::sigaction(signals_that_libraries_take[index], nullptr, &before_[index]);
}

KeptSignalHandlers::~KeptSignalHandlers() {
    for (std::size_t index = 0; index < before_.size(); ++index) {
        const int signal = signals_that_libraries_take[index];
        if (is_taken(signal)) ::sigaction(signal, &before_[index], nullptr);
    }
}

} // namespace netio::inline v0_3
