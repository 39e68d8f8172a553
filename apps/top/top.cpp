// SPDX-License-Identifier: Apache-2.0
#include "apps/top/top.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "apps/top/table.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/discovery/bus.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps::top {
namespace {

struct Search {
    std::vector<SocketAddress> found;
    std::string error;
    bool is_done = false;
};

} // namespace

struct NameSearch::Searches {
    Searches(Resolve by, std::size_t limit_count) : resolve{std::move(by)}, limit{limit_count} {}

    void run(const std::string& host, const std::shared_ptr<Search>& search) {
        std::vector<SocketAddress> found;
        std::string error;
        try {
            found = resolve(host);
        } catch (const std::exception& problem) {
            error = problem.what();
        }
        const std::lock_guard lock{mutex};
        search->found = std::move(found);
        search->error = std::move(error);
        search->is_done = true;
        changed.notify_all();
    }
    // If the limit is reached, removes finished lookups that no caller has fetched.
    bool has_room() {
        if (all.size() >= limit)
            std::erase_if(all, [](const auto& each) { return each.second->is_done; });
        return all.size() < limit;
    }

    std::mutex mutex;
    std::condition_variable changed;
    Resolve resolve;
    std::size_t limit;
    std::map<std::string, std::shared_ptr<Search>> all; // running, or not fetched yet
};

NameSearch::NameSearch()
    : NameSearch{[](const std::string& host) { return addresses_of({.host = host, .port = 0}); }} {}

NameSearch::NameSearch(Resolve resolve, std::size_t limit)
    : searches_{std::make_shared<Searches>(std::move(resolve), limit)} {}

std::vector<SocketAddress> NameSearch::find(const netio::Address& address, netio::TimePoint until) {
    try {
        return addresses_of(address, Lookup::numeric);
    } catch (const std::runtime_error&) { // not a numeric address
    }
    Searches& searches = *searches_;
    std::unique_lock lock{searches.mutex};
    std::shared_ptr<Search> search;
    const auto began = [&] {
        if (const auto known = searches.all.find(address.host); known != searches.all.end()) {
            search = known->second;
        } else if (searches.has_room()) {
            search = std::make_shared<Search>();
            const netio::AllSignalsBlocked blocked;
            std::thread{[all = searches_, host = address.host, search] {
                all->run(host, search);
            }}.detach();
            searches.all.emplace(address.host, search);
        }
        return search != nullptr;
    };
    const auto is_done = [&] { return search->is_done; };
    if (!searches.changed.wait_until(lock, until, began))
        throw std::runtime_error{"no answer: too many names are looked up"};
    if (!searches.changed.wait_until(lock, until, is_done))
        throw std::runtime_error{"no answer: its name was not resolved in time"};
    if (const auto known = searches.all.find(address.host);
        known != searches.all.end() && known->second == search)
        searches.all.erase(known);
    if (!search->error.empty()) throw std::runtime_error{"no answer: " + search->error};
    std::vector<SocketAddress> found = search->found;
    for (SocketAddress& each : found)
        each.set_port(address.port);
    return found;
}

namespace {

constexpr std::size_t address_limit = 8; // addresses tried per name

[[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error{"no answer: " + why};
}

[[noreturn]] void fail_with_errno() {
    fail(std::generic_category().message(errno));
}

void wait_for(std::span<pollfd> any, netio::TimePoint until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - netio::Clock::now());
    const auto time = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    if (time == 0 || ::poll(any.data(), any.size(), time) == 0)
        fail("not in time; is it the address of --metrics?");
}

// Returns 0, or the errno that prevents the connection.
int error_of(const Descriptor& socket) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// Connects to all addresses at the same time, so that an unreachable one does not delay the others.
// If none can be reached, throws the error of the best address.
Descriptor connected_to(std::span<const SocketAddress> addresses, netio::TimePoint until) {
    // One per address, in the same order.
    std::vector<Descriptor> sockets;
    std::vector<pollfd> trying; // failed ones have no descriptor; poll() skips them
    std::vector<int> errors;
    for (const SocketAddress& address :
         addresses.first(std::min(addresses.size(), address_limit))) {
        Descriptor socket{
            ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        const bool connected =
            socket.is_open() && ::connect(socket.get(), address.get(), address.size()) == 0;
        if (connected) return socket;
        const bool is_tried = socket.is_open() && errno == EINPROGRESS;
        errors.push_back(is_tried ? 0 : errno);
        trying.push_back({.fd = is_tried ? socket.get() : -1, .events = POLLOUT, .revents = 0});
        sockets.push_back(std::move(socket));
    }
    for (auto left = std::ranges::count(errors, 0); left > 0;) {
        wait_for(trying, until);
        for (std::size_t at = 0; at < sockets.size(); ++at) {
            if (trying[at].revents == 0) continue;
            errors[at] = error_of(sockets[at]);
            if (errors[at] == 0) return std::move(sockets[at]);
            trying[at] = {.fd = -1, .events = 0, .revents = 0};
            --left;
        }
    }
    const std::string why = std::generic_category().message(errors.front());
    fail(errors.front() == ECONNREFUSED ? why + "; start the program with --metrics" : why);
}

// Reads until the peer ends the connection.
void read_all(const Descriptor& socket, const FetchLimits& limits, Answer& answer) {
    std::vector<char> piece(65536);
    for (;;) {
        pollfd readable{.fd = socket.get(), .events = POLLIN, .revents = 0};
        wait_for({&readable, 1}, limits.until);
        const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), 0);
        if (got == 0) return;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got < 0) fail_with_errno();
        const std::string_view news{piece.data(), static_cast<std::size_t>(got)};
        if (answer.text().size() + news.size() > limits.answer_bytes || !answer.append(news))
            fail("it is too long");
    }
}

} // namespace

void fetch_metrics(std::span<const SocketAddress> addresses, const FetchLimits& limits,
                   const std::function<void(std::string_view text)>& show) {
    const Descriptor socket = connected_to(addresses, limits.until);
    // With HTTP 1.0 the server answers in one piece, and then closes the connection.
    constexpr std::string_view request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
        fail_with_errno();
    Answer answer{limits.room};
    read_all(socket, limits, answer);
    const std::string_view text = answer.text();
    const std::size_t head = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.") || head == std::string::npos) fail("not an HTTP answer");
    const std::string status{text.substr(std::min<std::size_t>(head, 9), 3)};
    if (status != "200") {
        const bool is_number =
            std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; });
        throw std::runtime_error{"answers " + (is_number ? status : "nonsense")};
    }
    show(text.substr(head + 4));
}

namespace {

// The address may come from an announcement, so it is not trusted.
Look look_at(const std::string& source, NameSearch& names, const FetchLimits& limits) {
    Look look{.source = source, .error = {}, .rows = {}};
    try {
        fetch_metrics(
            names.find(peer_address(source), limits.until), limits, [&](std::string_view text) {
                if (text.find("netio_") == std::string_view::npos)
                    throw std::runtime_error{
                        "answers, but with no figure of netio; is it the address of --metrics?"};
                look.rows = rows_of(text);
            });
    } catch (const std::exception& error) {
        look.error = error.what();
    }
    look.seconds = std::chrono::duration<double>(netio::Clock::now().time_since_epoch()).count();
    return look;
}

} // namespace

std::vector<Look> look_at(const std::vector<std::string>& sources, NameSearch& names,
                          const AskLimits& limits) {
    std::vector<Look> looks(sources.size());
    AnswerRoom room{limits.bytes_together};
    FetchLimits each = limits.each;
    each.room = &room;
    std::atomic<std::size_t> next = 0;
    const auto ask = [&] {
        for (std::size_t at = next++; at < sources.size(); at = next++)
            looks[at] = look_at(sources[at], names, each);
    };
    {
        std::vector<std::jthread> others; // further threads
        try {
            const netio::AllSignalsBlocked blocked;
            for (std::size_t i = 1; i < std::min(limits.at_once, sources.size()); ++i)
                others.emplace_back(ask);
        } catch (const std::system_error&) { // no more threads: use the existing ones
        }
        ask();
    }
    return looks;
}

struct BackgroundLook::Shared {
    Shared() : event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (!event.is_open())
            throw std::system_error{errno, std::generic_category(),
                                    "cannot start to fetch metrics"};
    }
    std::vector<Look> take() {
        eventfd_t count = 0;
        ::eventfd_read(event.get(), &count);
        const std::lock_guard lock{mutex};
        return std::move(looks);
    }

    const Descriptor event;
    std::mutex mutex;
    std::vector<Look> looks;
};

BackgroundLook::BackgroundLook(netio::EventLoop& loop,
                               std::function<void(std::vector<Look>)> on_seen)
    : shared_{std::make_shared<Shared>()}, watch_{loop, shared_->event.get(),
                                                  netio::DescriptorWatch::Interest::readable,
                                                  [this, on_seen = std::move(on_seen)] {
                                                      on_seen(shared_->take());
                                                  }} {}

void BackgroundLook::start(std::vector<std::string> sources) {
    start_thread_without_signals(
        [shared = shared_, sources = std::move(sources), names = names_]() mutable {
            std::vector<Look> looks = look_at(sources, names);
            const std::lock_guard lock{shared->mutex};
            shared->looks = std::move(looks);
            ::eventfd_write(shared->event.get(), 1);
        });
}

namespace {

// Returns false only for a loopback address of another host. An unreadable address is kept:
// fetching from it shows the error.
bool leads_there(const netio::pubsub::Announcement& announcement) {
    try {
        return netio::pubsub::leads_there_from(netio::pubsub::this_host(), announcement,
                                               peer_address(announcement.metrics));
    } catch (const std::invalid_argument&) {
        return true;
    }
}

} // namespace

BusSources::BusSources(netio::EventLoop& loop, const std::string& where)
    : loop_{loop}, bus_{netio::pubsub::open_bus(loop, where)} {
    bus_->watch(*this);
}

bool BusSources::read() {
    reading_ = true;
    end_timer_.start(stop_timeout);
    loop_.run();
    end_timer_.cancel();
    reading_ = false;
    return caught_up_;
}

std::vector<Source> BusSources::sources() const {
    std::vector<Source> sources;
    for (const auto& [name, address] : addresses_)
        sources.push_back({.address = address, .name = name});
    return sources;
}

void BusSources::on_announced(const netio::pubsub::Announcement& announcement) {
    addresses_.erase(announcement.name);
    if (announcement.metrics.empty()) return;
    if (leads_there(announcement)) {
        addresses_[announcement.name] = announcement.metrics;
    } else {
        log_.info(fmt::format("{} shows its metrics at {} on {} only", announcement.name,
                              announcement.metrics, announcement.host));
    }
}

void BusSources::on_warning(const std::string& what) {
    log_.warn("bus: " + what);
}

void BusSources::on_caught_up() {
    caught_up_ = true;
    if (reading_) loop_.stop();
}

} // namespace apps::top

namespace apps {

// netio top: shows slow subscribers and rates of programs that have metrics.

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
