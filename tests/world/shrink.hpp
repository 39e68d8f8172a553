// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reduces a schedule that breaks a rule as far as it still breaks the rule: fewer processes, steps,
// options and messages.

#include "tests/world/rules.hpp"
#include "tests/world/schedule.hpp"

#include <cstddef>
#include <functional>

namespace netio::world {

// `breaks`: returns whether a schedule still breaks the rule; called at most `limit` times.
Schedule shrink(Schedule schedule, const std::function<bool(const Schedule&)>& breaks,
                std::size_t limit);

} // namespace netio::world
