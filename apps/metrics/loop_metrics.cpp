// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/loop_metrics.hpp"

#include "apps/common/log_losses.hpp"
#include "netio/base/version.hpp"

namespace apps {

LoopFigures take_figures(netio::EventLoop& loop) {
    return {.turns = loop.turns().count(),
            .waits = loop.wait_count(),
            .longest_turn = loop.turns().take_longest_lately(),
            .stalled = loop.stalled(),
            .log_lines_left_out = lines_left_out_of_log().load()};
}

void write(const LoopFigures& loop, Exposition& text) {
    text.gauge("netio_info", "What runs here")
        .add({{"version", netio::version()}}, std::uint64_t{1});
    text.counter("netio_loop_turns_total", "Turns of the event loop that did some work")
        .add(loop.turns);
    text.counter("netio_loop_waits_total", "How often the event loop has gone to sleep")
        .add(loop.waits);
    text.gauge("netio_loop_longest_turn_seconds", "The longest turn since the last scrape")
        .add(loop.longest_turn);
    text.counter("netio_loop_stalled_seconds_total", "How long the event loop has not looked")
        .add(loop.stalled);
    text.counter("netio_log_lines_left_out_total",
                 "Lines of the log that nobody took, or that could not be written")
        .add(loop.log_lines_left_out);
}

} // namespace apps
