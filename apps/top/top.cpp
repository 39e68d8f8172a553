// SPDX-License-Identifier: Apache-2.0

// netio top: shows slow subscribers and rates of programs that have metrics.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/process.hpp"
#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "apps/program/commands.hpp"
#include "apps/top/look.hpp"
#include "apps/top/table.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {
namespace top {
namespace {

// While it exists and the program is in the foreground of the terminal, the program gets each key
// immediately and without echo. Ctrl-C and Ctrl-Z remain signals.
class KeyMode {
  public:
    explicit KeyMode(int terminal);
    ~KeyMode() { leave(); }
    KeyMode(const KeyMode&) = delete;
    KeyMode& operator=(const KeyMode&) = delete;

    // May be called repeatedly. Without a terminal they do nothing.
    void enter();
    void leave();
    bool is_on() const noexcept { return is_on_; }

  private:
    int terminal_;
    termios before_{};
    bool is_on_ = false;
};

KeyMode::KeyMode(int terminal) : terminal_{::isatty(terminal) == 1 ? terminal : -1} {
    enter();
}

void KeyMode::enter() {
    // In the background, changing the terminal's settings would stop the program.
    if (is_on_ || terminal_ < 0 || ::tcgetpgrp(terminal_) != ::getpgrp()) return;
    if (::tcgetattr(terminal_, &before_) != 0) return;
    termios one_by_one = before_;
    one_by_one.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    one_by_one.c_cc[VMIN] = 0; // a read never waits
    one_by_one.c_cc[VTIME] = 0;
    is_on_ = ::tcsetattr(terminal_, TCSANOW, &one_by_one) == 0;
}

void KeyMode::leave() {
    if (std::exchange(is_on_, false)) ::tcsetattr(terminal_, TCSANOW, &before_);
}

struct TopArguments {
    std::vector<std::string> sources;
    std::string bus; // empty: none
    std::optional<netio::Duration> interval;
    Order order = Order::as_shown;
    bool once = false;
    bool json = false;
};

// How the table is shown.
enum class Form : std::uint8_t {
    terminal, // redrawn on one screen
    lines,    // one look after another
    once,     // only the second look, because rates need two
};

Form form_of(const TopArguments& arguments) {
    if (arguments.once) return Form::once;
    return !arguments.json && ::isatty(STDOUT_FILENO) == 1 ? Form::terminal : Form::lines;
}

class Run {
  public:
    explicit Run(const TopArguments& arguments)
        : arguments_{arguments}, form_{form_of(arguments)}, interval_{arguments.interval.value_or(
                                                                std::chrono::seconds{1})},
          watched_signals_{loop_, signals(),
                           [this](int number) { number == SIGWINCH ? draw() : end(); }} {
        if (!arguments.bus.empty()) bus_.emplace(loop_, arguments.bus);
    }

    int run() {
        if (bus_ && !bus_->read() && !ended_) {
            spdlog::error("cannot read the bus '{}'", arguments_.bus);
            return to_integer(ExitStatus::failed);
        }
        if (form_ == Form::terminal) take_keys();
        if (!ended_) look();
        if (!ended_) loop_.run();
        key_mode_.reset();
        if (form_ == Form::terminal) put_on_terminal("\n"); // the prompt begins on a new line
        if (output_.failure() || form_ != Form::terminal) output_.wait();
        if (ended_) return to_integer(ExitStatus::done);
        return status_of_looks();
    }

  private:
    std::vector<int> signals() const {
        std::vector<int> numbers = end_signals();
        if (form_ == Form::terminal) numbers.insert(numbers.end(), {SIGQUIT, SIGWINCH});
        return numbers;
    }
    int status_of_looks() const {
        if (looks_.empty()) {
            spdlog::error("no program on the bus '{}' has metrics", arguments_.bus);
            return to_integer(ExitStatus::nothing);
        }
        const bool failed =
            std::ranges::any_of(looks_, [](const Look& look) { return !look.error.empty(); });
        return to_integer(failed ? ExitStatus::failed : ExitStatus::done);
    }
    void end() {
        ended_ = true;
        loop_.stop();
    }

    // --- looking

    void look() {
        sources_.clear();
        for (const std::string& address : arguments_.sources)
            sources_.push_back({.address = address});
        if (bus_) {
            const std::vector<Source> found = bus_->sources();
            sources_.insert(sources_.end(), found.begin(), found.end());
        }
        std::vector<std::string> addresses;
        for (const Source& source : sources_)
            addresses.push_back(source.address);
        background_.start(std::move(addresses));
    }
    void on_seen(std::vector<Look> looks) {
        for (std::size_t at = 0; at < looks.size(); ++at) {
            looks[at].name = sources_[at].name;
            const auto last = std::ranges::find(looks_, looks[at].source, &Look::source);
            if (last != looks_.end()) add_rates(looks[at], *last);
            sort(looks[at].rows, arguments_.order);
        }
        looks_ = std::move(looks);
        show();
        if (form_ == Form::once && looks_seen_ == 2) return loop_.stop();
        if (form_ == Form::terminal || output_.is_done()) next_look_.start(interval_);
    }

    // --- showing

    void show() {
        ++looks_seen_;
        if (form_ == Form::terminal) return draw();
        if (form_ == Form::once && looks_seen_ < 2) return;
        if (arguments_.json && looks_seen_ < 2) return; // no rates yet
        output_.put(arguments_.json ? to_json(looks_) + "\n" : to_text(looks_));
    }
    // A stopped terminal (Ctrl-S) shows the newest look when it continues.
    void draw() {
        is_due_ = !output_.is_done();
        if (is_due_ || looks_seen_ == 0) return;
        const Screen screen = screen_of(looks_, window());
        scroll_ = std::min(scroll_, screen.scroll_limit);
        scroll_limit_ = screen.scroll_limit;
        page_ = screen.page;
        output_.put(fmt::format("\x1b[H\x1b[2J{}", fmt::join(screen.lines, "\n")));
    }
    Window window() const {
        Window window{.scroll = scroll_, .has_keys = key_mode_ && key_mode_->is_on()};
        winsize size{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
            window.width = size.ws_col;
            window.height = size.ws_row;
        }
        return window;
    }
    void output_changed() {
        output_.clear_event();
        if (output_.failure()) return loop_.stop();
        if (is_due_) return draw();
        if (form_ == Form::lines && !next_look_.armed() && output_.is_done())
            next_look_.start(interval_);
    }

    // --- keys

    void take_keys() {
        if (::isatty(STDIN_FILENO) != 1) return;
        key_mode_.emplace(STDIN_FILENO);
        job_signals_.emplace(loop_, std::vector<int>{SIGTSTP, SIGCONT}, [this](int number) {
            if (number == SIGTSTP) {
                watched_keys_.reset();
                key_mode_->leave();
                ::kill(::getpid(), SIGSTOP); // SIGCONT follows
                return;
            }
            watch_keys();
            draw();
        });
        watch_keys();
    }
    void watch_keys() {
        key_mode_->enter();
        if (!key_mode_->is_on()) return watched_keys_.reset();
        watched_keys_.emplace(loop_, STDIN_FILENO, netio::DescriptorWatch::Interest::readable,
                              [this] { read_keys(); });
    }
    void read_keys() {
        std::array<char, 256> bytes{};
        const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (got < 0 && errno == EINTR) return;
        if (got <= 0) return watched_keys_.reset(); // the terminal is closed
        for (const Key key : parser_.parse({bytes.data(), static_cast<std::size_t>(got)}))
            press(key);
        draw();
    }
    void press(Key key) {
        const auto up = [this](std::size_t lines) { scroll_ -= std::min(scroll_, lines); };
        const auto down = [this](std::size_t lines) {
            scroll_ = std::min(scroll_ + lines, scroll_limit_);
        };
        switch (key) {
        case Key::quit:
            return end();
        case Key::up:
            return up(1);
        case Key::down:
            return down(1);
        case Key::page_up:
            return up(page_);
        case Key::page_down:
            return down(page_);
        case Key::first:
            return up(scroll_);
        case Key::last:
            return down(scroll_limit_);
        }
    }

    const TopArguments& arguments_;
    const Form form_;
    const netio::Duration interval_;
    netio::EventLoop loop_;
    std::optional<KeyMode>
        key_mode_; // constructed early, so that the terminal is restored in any case
    std::optional<BusSources> bus_;
    std::vector<Source> sources_; // of the current look
    std::vector<Look> looks_;
    std::size_t looks_seen_ = 0;
    std::size_t scroll_ = 0;
    std::size_t scroll_limit_ = 0; // of the last screen
    std::size_t page_ = 1;
    bool is_due_ = false; // draw when the previous screen is written
    bool ended_ = false;
    KeyParser parser_;
    netio::Timer next_look_{loop_, [this] { look(); }};
    BackgroundLook background_{loop_,
                               [this](std::vector<Look> looks) { on_seen(std::move(looks)); }};
    BackgroundWriter output_{
        DescriptorOutput{STDOUT_FILENO, "cannot write the report to standard output"}.write()};
    netio::DescriptorWatch output_watch_{loop_, output_.event_descriptor(),
                                         netio::DescriptorWatch::Interest::readable,
                                         [this] { output_changed(); }};
    std::optional<netio::DescriptorWatch> watched_keys_;
    netio::SignalWatch watched_signals_;
    std::optional<netio::SignalWatch> job_signals_;
};

} // namespace
} // namespace top

Command add_top(CLI::App& program) {
    using top::Order;
    auto* command =
        program.add_subcommand("top", "Show slow subscribers and rates of programs with --metrics");
    const auto arguments = std::make_shared<top::TopArguments>();
    auto* const programs = command->add_option("programs", arguments->sources,
                                               "HOST:PORT of each program's --metrics");
    auto* const bus = add_bus(*command, arguments->bus);
    command->callback([programs, bus] {
        if (programs->count() == 0 && bus->count() == 0)
            throw CLI::ValidationError{"top",
                                       "add the HOST:PORT of a program's --metrics, or --bus"};
    });
    add_duration(*command, "--interval", arguments->interval, "Interval between two looks, 1 s");
    add_words(
        *command, "--sort", {"rate", "count", "waiting", "idle", "again", "dropped"},
        [arguments](std::size_t at) {
            arguments->order = std::array{Order::rate, Order::count, Order::waiting,
                                          Order::idle, Order::again, Order::dropped}
                                   .at(at);
        },
        "rate, count, waiting, idle, again or dropped");
    command->add_flag("--once", arguments->once, "Show the table once, after two looks, and end");
    command->add_flag("--json", arguments->json, "Print one JSON object per look");
    return [arguments] { return top::Run{*arguments}.run(); };
}

} // namespace apps
