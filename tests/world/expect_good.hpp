// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a world and fails the test for each rule that the world breaks.

#include "tests/world/schedule.hpp"
#include "tests/world/world.hpp"

#include <gtest/gtest.h>

namespace netio::world {

inline void expect_no_violation(const Outcome& outcome) {
    for (const Violation& violation : outcome.violations)
        ADD_FAILURE() << to_text(violation);
}
inline void expect_good(const char* schedule) {
    expect_no_violation(World{parse_schedule(schedule)}.run());
}

} // namespace netio::world
