// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that stay on in every build. A data-acquisition process with wrong internal state does
// more harm than one that has stopped, so a broken invariant prints where and what, and aborts. The
// checks are for bugs of this program only: invalid input and failures of the environment are
// reported as in netio/base/status.hpp.

#include <cstdio>
#include <cstdlib>

namespace netio::detail {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const char* explanation) noexcept {
    std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition,
                 *explanation != '\0' ? ": " : "", explanation);
    std::fflush(stderr);
    std::abort();
}

// Ends the program with one line, because a call breaks a rule of the interface.
[[noreturn]] inline void misused(const char* rule) noexcept {
    std::fprintf(stderr, "netio: %s\n", rule);
    std::fflush(stderr);
    std::abort();
}

} // namespace netio::detail

#define NETIO_CHECK_MSG(condition, explanation)                                                    \
    ((condition) ? static_cast<void>(0)                                                            \
                 : ::netio::detail::check_failed(__FILE__, __LINE__, #condition, explanation))

#define NETIO_CHECK(condition) NETIO_CHECK_MSG(condition, "")
