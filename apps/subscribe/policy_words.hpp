// SPDX-License-Identifier: Apache-2.0
#pragma once

// What --policy takes.

#include "pubsub/core/slow_policy.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace apps::subscribe {

// In the order of SlowPolicy.
inline constexpr std::array<std::string_view, 4> policy_words{"block", "drop", "disconnect",
                                                              "newest"};

// Nothing: the publisher's own.
inline std::optional<netio::pubsub::SlowPolicy> policy_named(std::string_view word) {
    const auto* const found = std::ranges::find(policy_words, word);
    if (found == policy_words.end()) return std::nullopt;
    return static_cast<netio::pubsub::SlowPolicy>(found - policy_words.begin());
}

} // namespace apps::subscribe
