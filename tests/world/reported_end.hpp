// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a reported end has a cause among the faults of the process and its peer.

#include "netio/base/status.hpp"
#include "tests/world/oracle.hpp"

#include <cstdint>

namespace netio::world {

struct ReportedEnd {
    std::uint32_t process;
    std::uint32_t peer;
    TimePoint since; // when it was connected
    const Closed& closed;
    Duration dead_after; // configured in the process
    // Between a publisher that keeps messages and a subscriber that asks for them: without a fault
    // it may be too slow for them, which ends its session where it must not lose any.
    bool has_history = false;
};

// `device`: the device of the world, or 0.
void judge_end(Oracle& oracle, std::int64_t device, const ReportedEnd& reported);

} // namespace netio::world
