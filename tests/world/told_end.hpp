// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a reported end has a cause among the faults of the process and its peer.

#include "netio/base/status.hpp"
#include "tests/world/oracle.hpp"

#include <cstdint>

namespace netio::world {

struct ToldEnd {
    std::uint32_t process;
    std::uint32_t peer;
    TimePoint since; // when it was connected
    const Closed& closed;
    Duration dead_after; // configured in the process
};

// `device`: the device of the world, or 0.
void judge_end(Oracle& oracle, std::int64_t device, const ToldEnd& told);

} // namespace netio::world
