// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program shows of itself while it runs.

#include "apps/common/report.hpp"
#include "netio/loop/event_loop.hpp"

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
    enum class Form : std::uint8_t {
        none,
        one_line, // on standard output, if that is a terminal
        log,      // a line of the log each time
    };
    // `sums` is asked once a second.
    LiveDisplay(netio::EventLoop& loop, Form form, std::function<Sums()> sums);
    // Ends the line, so that what follows begins on one of its own.
    ~LiveDisplay();
    LiveDisplay(const LiveDisplay&) = delete;
    LiveDisplay& operator=(const LiveDisplay&) = delete;

  private:
    void show();

    netio::EventLoop& loop_;
    Form form_;
    std::function<Sums()> sums_;
    Sums last_;
    netio::TimePoint last_time_;
    bool shown_ = false;
    netio::Timer timer_;
};

// Programs that read the output want the report only; people may want either form.
constexpr LiveDisplay::Form live_form(bool json, bool progress) noexcept {
    if (progress) return LiveDisplay::Form::log;
    return json ? LiveDisplay::Form::none : LiveDisplay::Form::one_line;
}

} // namespace apps
