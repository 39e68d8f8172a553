// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace apps {

// Writes lines to standard output while a loop runs. The loop never waits for the reader: lines are
// queued, up to BackgroundWriter::queue_limit_bytes. While the queue is full the program pauses its
// peers, or drops lines and reports how many. If standard output fails (full disk, closed pipe) the
// loop stops, and finish() throws the failure.
class ShownLines {
  public:
    // Calls `on_writable` from the loop when a full queue has space again.
    explicit ShownLines(
        netio::EventLoop& loop, std::function<void()> on_writable = [] {});
    ShownLines(const ShownLines&) = delete;
    ShownLines& operator=(const ShownLines&) = delete;

    // Queues the text, even beyond the limit. Escapes as print_report().
    void print(std::string_view text) {
        if (is_printable(text, Lines::several)) {
            writer_.put(text);
        } else {
            writer_.put(printable(text, std::string_view::npos, Lines::several));
        }
        was_full_ = was_full_ || writer_.is_full();
    }
    bool is_full() const { return writer_.is_full(); }
    // Call after the loop has ended. Waits until everything is written or a signal asks the program
    // to end. Throws std::runtime_error if not everything is written.
    void finish();

  private:
    BackgroundWriter writer_;
    bool was_full_ = false; // on_writable has not been called since then
    netio::DescriptorWatch watch_;
};

// Shows the progress of a program once a second.
class LiveDisplay {
  public:
    struct Sums {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::optional<std::uint64_t> lost;
    };
    enum class Form : std::uint8_t {
        none,
        one_line, // on standard output, if it is a terminal
        log,      // one log line each second
    };
    // Calls `sums` once a second.
    LiveDisplay(netio::EventLoop& loop, Form form, std::function<Sums()> sums);
    // Ends the progress line, so that later output begins on a new line.
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

// With JSON output only the report is printed; for people either form is possible.
constexpr LiveDisplay::Form live_form(bool json, bool progress) noexcept {
    if (progress) return LiveDisplay::Form::log;
    return json ? LiveDisplay::Form::none : LiveDisplay::Form::one_line;
}

} // namespace apps
