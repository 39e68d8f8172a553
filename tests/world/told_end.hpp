// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether an end that a process was told has a reason in what happened to it and to its peer.

#include "netio/base/status.hpp"
#include "tests/world/oracle.hpp"

#include <cstdint>

namespace netio::world {

struct ToldEnd {
    std::uint32_t process;
    std::uint32_t peer;
    TimePoint since; // it was connected
    const Closed& closed;
    Duration dead_after; // of the process
};

// `device`: which one the world has, 0: none.
void judge_end(Oracle& oracle, std::int64_t device, const ToldEnd& told);

} // namespace netio::world
