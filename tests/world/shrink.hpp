// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a schedule that breaks a rule as short as it gets and still breaks it: without processes,
// steps and options, with fewer messages.

#include "tests/world/rules.hpp"
#include "tests/world/schedule.hpp"

#include <cstddef>
#include <functional>

namespace netio::world {

// `breaks`: whether a schedule still breaks the rule; asked at most `limit` times.
Schedule shrink(Schedule schedule, const std::function<bool(const Schedule&)>& breaks,
                std::size_t limit);

} // namespace netio::world
