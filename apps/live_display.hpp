// SPDX-License-Identifier: Apache-2.0
#pragma once

// The line that a terminal shows while a program runs; nothing elsewhere.

#include "apps/report.hpp"
#include "netio/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace apps {

class LiveDisplay {
  public:
    struct Sums {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::optional<std::uint64_t> lost;
    };
    // `sums` is asked once a second, if `wanted` and standard output is a terminal.
    LiveDisplay(netio::EventLoop& loop, bool wanted, std::function<Sums()> sums);
    // Ends the line, so that what follows begins on one of its own.
    ~LiveDisplay();
    LiveDisplay(const LiveDisplay&) = delete;
    LiveDisplay& operator=(const LiveDisplay&) = delete;

  private:
    void show();

    netio::EventLoop& loop_;
    std::function<Sums()> sums_;
    Sums last_;
    netio::TimePoint last_time_;
    bool shown_ = false;
    netio::Timer timer_;
};

} // namespace apps
