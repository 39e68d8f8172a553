// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every program shows: of its loop and its log. No I/O.

#include "apps/metrics/exposition.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstdint>

namespace apps {

struct LoopFigures {
    std::uint64_t turns = 0;
    std::uint64_t waits = 0;
    netio::Duration longest_turn{}; // since they were taken last
    netio::Duration stalled{};
    std::uint64_t log_lines_left_out = 0; // of the program
};
LoopFigures take_figures(netio::EventLoop& loop);
void write(const LoopFigures& loop, Exposition& text);

} // namespace apps
