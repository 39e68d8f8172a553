// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one way of checking options: before anything is bound or allocated, with the option's name,
// its value and what is allowed.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace netio::inline v0_2 {

// Throws std::invalid_argument{rule}.
inline void require_option(bool good, const std::string& rule) {
    if (!good) throw std::invalid_argument{rule};
}

inline void require_between(const char* option, std::uint64_t value, std::uint64_t least,
                            std::uint64_t most) {
    require_option(value >= least && value <= most,
                   std::string{option} + " is " + std::to_string(value) + "; it must be from " +
                       std::to_string(least) + " to " + std::to_string(most));
}

inline void require_at_least(const char* option, std::int64_t value, std::int64_t least) {
    require_option(value >= least, std::string{option} + " is " + std::to_string(value) +
                                       "; it must be at least " + std::to_string(least));
}

} // namespace netio::inline v0_2
