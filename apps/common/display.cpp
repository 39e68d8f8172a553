// SPDX-License-Identifier: Apache-2.0
#include "apps/common/display.hpp"

#include "apps/common/terminal.hpp"

#include <spdlog/spdlog.h>

#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace apps {

ShownLines::ShownLines(netio::EventLoop& loop, std::function<void()> on_writable)
    : writer_{DescriptorOutput{STDOUT_FILENO, "cannot write to standard output"}.write()},
      watch_{loop, writer_.event_descriptor(), netio::DescriptorWatch::Interest::readable,
             [this, &loop, on_writable = std::move(on_writable)] {
                 writer_.clear_event();
                 if (writer_.failure()) return loop.stop();
                 if (!writer_.is_full() && std::exchange(was_full_, false)) on_writable();
             }} {}

void ShownLines::finish() {
    if (!writer_.wait())
        throw std::runtime_error{
            "cannot write to standard output: its reader is blocked, and a signal ended the wait"};
}

namespace {
constexpr std::chrono::seconds interval{1};
} // namespace

LiveDisplay::LiveDisplay(netio::EventLoop& loop, Form form, std::function<Sums()> sums)
    : loop_{loop}, form_{form}, sums_{std::move(sums)}, last_time_{loop.now()}, timer_{loop,
                                                                                       [this] {
                                                                                           show();
                                                                                       }} {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    if (form == Form::log || (form == Form::one_line && terminal)) timer_.start(interval);
}

LiveDisplay::~LiveDisplay() {
    if (shown_) put_on_terminal("\n");
}

void LiveDisplay::show() {
    const Sums sums = sums_();
    const Throughput since{.messages = sums.messages - last_.messages,
                           .bytes = sums.bytes - last_.bytes,
                           .seconds =
                               std::chrono::duration<double>(loop_.now() - last_time_).count()};
    const std::string line = live_line(since, sums.messages, sums.lost);
    if (form_ == Form::log) {
        spdlog::info("progress {}", line);
    } else {
        shown_ = put_on_terminal(in_its_place(line, terminal_columns())) || shown_;
    }
    last_ = sums;
    last_time_ = loop_.now();
    timer_.start(interval);
}

} // namespace apps
