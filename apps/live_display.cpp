// SPDX-License-Identifier: Apache-2.0
#include "apps/live_display.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace apps {
namespace {
constexpr std::chrono::seconds interval{1};
}

LiveDisplay::LiveDisplay(netio::EventLoop& loop, bool wanted, std::function<Sums()> sums)
    : loop_{loop}, sums_{std::move(sums)}, last_time_{loop.now()}, timer_{loop,
                                                                          [this] { show(); }} {
    if (wanted && ::isatty(STDOUT_FILENO) == 1) timer_.start(interval);
}

LiveDisplay::~LiveDisplay() {
    if (shown_) fmt::print("\n");
}

void LiveDisplay::show() {
    const Sums sums = sums_();
    const Throughput since{.messages = sums.messages - last_.messages,
                           .bytes = sums.bytes - last_.bytes,
                           .seconds =
                               std::chrono::duration<double>(loop_.now() - last_time_).count()};
    // Back to the beginning, and what was longer before is cleared.
    fmt::print("\r{}\x1b[K", live_line(since, sums.messages, sums.lost));
    std::fflush(stdout);
    shown_ = true;
    last_ = sums;
    last_time_ = loop_.now();
    timer_.start(interval);
}

} // namespace apps
