// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of options, made before anything is bound or allocated. The error contains the option's
// name, its value and the allowed values.

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace netio::inline v0_3 {

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

// A longer time, in nanoseconds and added to now, may wrap round: the time-out would expire at
// once.
inline constexpr std::chrono::milliseconds longest_time = std::chrono::hours{24 * 365};

inline void require_time(const char* option, std::chrono::milliseconds time,
                         std::chrono::milliseconds least = std::chrono::milliseconds{1}) {
    require_option(time >= least && time <= longest_time,
                   std::string{option} + " is " + std::to_string(time.count()) +
                       " ms; it must be from " + std::to_string(least.count()) + " to " +
                       std::to_string(longest_time.count()) + " ms, a year");
}

} // namespace netio::inline v0_3
