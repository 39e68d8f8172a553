// SPDX-License-Identifier: Apache-2.0
#pragma once

// For programs that have read a key: none of its bytes ends in a core file, and no other process of
// the same user looks into the memory (ptrace(2), prctl(2)).

#include <sys/prctl.h>
#include <sys/resource.h>

namespace apps {

inline void forbid_core_dumps() noexcept {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

} // namespace apps
