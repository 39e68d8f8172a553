// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a machine's state means for running on RDMA, and what to change. No I/O.

#include "apps/common/machine.hpp"

#include <string>
#include <vector>

namespace apps {

struct Finding {
    enum class Kind : std::uint8_t {
        good,
        note,   // worth knowing
        change, // does not work, or badly, as it is
    };
    Kind kind = Kind::good;
    std::string what;
    std::string remedy; // of a change, and of some notes
};

std::string_view to_string(Finding::Kind kind) noexcept;

// From the device upwards: a later finding often follows from an earlier one.
std::vector<Finding> diagnose(const Machine& machine);
// Nothing has to be changed.
bool is_well(const std::vector<Finding>& findings) noexcept;

} // namespace apps
