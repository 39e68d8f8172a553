// SPDX-License-Identifier: Apache-2.0
#pragma once

// Evaluates a machine's state for running on RDMA, and proposes changes. No I/O.

#include "apps/common/machine.hpp"

#include <string>
#include <vector>

namespace apps {

struct Finding {
    enum class Kind : std::uint8_t {
        good,
        note,   // information
        change, // must be changed to work well
    };
    Kind kind = Kind::good;
    std::string what;
    std::string remedy; // for changes and some notes
};

std::string_view to_string(Finding::Kind kind) noexcept;

// Ordered from the device upwards: a later finding often follows from an earlier one.
std::vector<Finding> diagnose(const Machine& machine);
// Returns true if nothing has to be changed.
bool is_well(const std::vector<Finding>& findings) noexcept;

} // namespace apps
