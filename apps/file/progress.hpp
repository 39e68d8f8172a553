// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "netio/base/time.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace apps::file {

// Shows the progress of long work once a second in one line, if standard output is a terminal.
class Progress {
  public:
    explicit Progress(bool json) : is_shown_{!json && ::isatty(STDOUT_FILENO) == 1} {}
    ~Progress() {
        if (was_shown_) put_on_terminal(in_its_place("", terminal_columns()));
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Call often; costs a few instructions.
    void show(std::uint64_t done_bytes, std::uint64_t total_bytes) {
        if (!is_shown_ || (++calls_ & 0xfff) != 0) return;
        const netio::TimePoint now = netio::Clock::now();
        if (now - last_ < std::chrono::seconds{1}) return;
        last_ = now;
        was_shown_ = true;
        const double done = static_cast<double>(done_bytes);
        const double seconds = std::chrono::duration<double>(now - begin_).count();
        put_on_terminal(in_its_place(
            fmt::format("{:.0f} % of {}B, {}B/s",
                        total_bytes > 0 ? 100 * done / static_cast<double>(total_bytes) : 0,
                        short_number(static_cast<double>(total_bytes)),
                        short_number(done / seconds)),
            terminal_columns()));
    }

  private:
    bool is_shown_;
    bool was_shown_ = false;
    std::uint64_t calls_ = 0;
    netio::TimePoint begin_ = netio::Clock::now();
    netio::TimePoint last_ = begin_;
};

} // namespace apps::file
