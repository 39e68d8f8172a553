// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many lines of this program's log were left out until now: nobody took them, or they could not
// be written. Any thread.

#include <atomic>
#include <cstdint>

namespace apps {

inline std::atomic<std::uint64_t>& lines_left_out_of_log() noexcept {
    static std::atomic<std::uint64_t> count{0};
    return count;
}

} // namespace apps
