// SPDX-License-Identifier: Apache-2.0
#include "apps/common/report.hpp"

#include "apps/common/io.hpp"
#include "netio/base/control_characters.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <ctime>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace apps {
namespace {

bool is_layout(std::string_view sequence, Lines lines) {
    return lines == Lines::several && (sequence == "\n" || sequence == "\t");
}

bool is_shown(std::string_view sequence, Lines lines) {
    return is_layout(sequence, lines) || !netio::is_unprintable(sequence);
}

} // namespace

std::string printable(std::string_view text, std::size_t limit_bytes, Lines lines) {
    return netio::printable(text, limit_bytes, lines == Lines::several);
}

bool is_printable(std::string_view text, Lines lines) {
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        if (length == 0 || !is_shown(text.substr(0, length), lines)) return false;
        text.remove_prefix(length);
    }
    return true;
}

void print_report(std::string_view text, int descriptor) {
    constexpr std::string_view failure = "cannot write the report to standard output";
    spdlog::default_logger_raw()->flush();
    BackgroundWriter writer{DescriptorOutput{descriptor, failure}.write()};
    if (is_printable(text, Lines::several)) {
        writer.put(text);
    } else {
        writer.put(printable(text, std::string::npos, Lines::several));
    }
    if (!writer.wait())
        throw std::runtime_error{std::string{failure} +
                                 ": its reader is blocked, and a signal ended the wait"};
}

namespace {

// Returns whether a write would not block, now or after up to `timeout`: a pipe then accepts
// PIPE_BUF bytes, a terminal 256. False for a stopped terminal (Ctrl-S). A descriptor with an error
// counts as ready, and the write reports the error.
bool takes_now(int descriptor, std::chrono::milliseconds timeout = {}) noexcept {
    pollfd asked{.fd = descriptor, .events = POLLOUT, .revents = 0};
    int ready = 0;
    do {
        ready = ::poll(&asked, 1, static_cast<int>(timeout.count()));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

constexpr std::chrono::seconds write_timeout{1};
constexpr std::size_t terminal_piece = 256; // see takes_now()

// Blocks SIGPIPE, so that a closed reader is an error of the write and does not end the program.
class PipeSignalBlocked {
  public:
    PipeSignalBlocked() noexcept {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~PipeSignalBlocked() {
        const timespec at_once{};
        if (::sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    PipeSignalBlocked(const PipeSignalBlocked&) = delete;
    PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

  private:
    sigset_t pipe_{};
    sigset_t before_{};
};

// Returns an empty text if there is no memory to escape it.
std::string shown_of(std::string_view text) noexcept {
    try {
        return printable(text, PIPE_BUF, Lines::several);
    } catch (const std::bad_alloc&) {
        return {};
    }
}

} // namespace

void tell_standard_error(std::string_view text) noexcept {
    // A larger write could block.
    const std::size_t piece = ::isatty(STDERR_FILENO) == 1 ? terminal_piece : PIPE_BUF;
    const PipeSignalBlocked blocked;
    const std::string shown = shown_of(text);
    text = shown;
    auto wait = write_timeout;
    while (!text.empty() && takes_now(STDERR_FILENO, std::exchange(wait, {}))) {
        const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min(piece, text.size()));
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::size_t terminal_columns() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
}

std::string in_its_place(std::string_view line, std::size_t columns) {
    return "\r" + printable(line, columns - 1) + "\x1b[K";
}

bool put_on_terminal(std::string_view text) {
    bool taken = false;
    while (!text.empty() && takes_now(STDOUT_FILENO)) {
        const ssize_t written =
            ::write(STDOUT_FILENO, text.data(), std::min(terminal_piece, text.size()));
        if (written <= 0) break; // the terminal is closed; the report will fail, too
        text.remove_prefix(static_cast<std::size_t>(written));
        taken = true;
    }
    return taken;
}

namespace {

using Json = nlohmann::ordered_json;

void add(Json& json, const Throughput& throughput) {
    json["messages"] = throughput.messages;
    json["bytes"] = throughput.bytes;
    json["seconds"] = throughput.seconds;
    json["messages_per_s"] = throughput.messages_per_s();
    json["gbit_per_s"] = throughput.gbit_per_s();
}

// One row per fid. Appends directly, because operator[] would compare each fid with all earlier
// ones.
class Rows {
  public:
    Rows(Json& json, std::size_t count) {
        json = Json::object();
        rows_ = &json.get_ref<Json::object_t&>();
        rows_->reserve(count);
    }
    Json& add(netio::pubsub::Fid fid, Json row) {
        return rows_->emplace_back(to_string(fid), std::move(row)).second;
    }

  private:
    Json::object_t* rows_;
};

Json json_of(const PublishReport& report) {
    Json json;
    json["role"] = "publisher";
    json["report_version"] = report_version;
    if (!report.name.empty()) json["name"] = report.name;
    if (report.loops > 1) json["loops"] = report.loops;
    json["provider"] = report.provider;
    json["mode"] = report.mode;
    json["end"] = report.end;
    add(json, report.throughput);
    json["without_subscribers"] = report.without_subscribers;
    json["again"] = report.again;
    json["dropped"] = report.dropped;
    json["pages"] = report.pages;
    json["disconnected"] = report.disconnected;
    json["unconfirmed"] = report.unconfirmed;
    for (const TriggerReport& trigger : report.triggers) {
        json["triggers"][trigger.name] = {{"events", trigger.events},
                                          {"put_off_s", trigger.put_off_s}};
    }
    if (report.faults) {
        json["faults"] = {{"missing", report.faults->missing},
                          {"duplicated", report.faults->duplicated},
                          {"corrupted", report.faults->corrupted},
                          {"late", report.faults->late},
                          {"truncated", report.faults->truncated}};
    }
    Rows rows{json["fids"], report.fids.size()};
    for (const PublishedFid& fid : report.fids)
        rows.add(fid.fid, {{"messages", fid.messages}});
    return json;
}

std::string text_of(const Throughput& throughput) {
    return fmt::format("  {} messages, {} bytes in {:.3f} s: {}messages/s, {:.3f} Gb/s\n",
                       throughput.messages, throughput.bytes, throughput.seconds,
                       short_number(throughput.messages_per_s()), throughput.gbit_per_s());
}

} // namespace

std::string short_number(double value) {
    for (const auto& [unit, name] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}) {
        // A value that rounds up to the unit is shown in that unit.
        if (value >= unit * 0.9995) return fmt::format("{:.3g} {}", value / unit, name);
    }
    return fmt::format("{:.3g} ", value);
}

std::string to_json(const PublishReport& report) {
    return json_line(json_of(report));
}

std::string to_json(const std::vector<PublishReport>& reports) {
    if (reports.size() == 1) return to_json(reports.front());
    Json json;
    json["role"] = "publishers";
    json["report_version"] = report_version;
    json["publishers"] = Json::array();
    for (const PublishReport& report : reports)
        json["publishers"].push_back(json_of(report));
    return json_line(json);
}

std::string to_json(const SubscribeReport& report) {
    Json json;
    json["role"] = "subscriber";
    json["report_version"] = report_version;
    json["provider"] = report.provider;
    json["mode"] = report.mode;
    json["end"] = report.end;
    json["outcome"] = report.outcome;
    json["reached"] = report.reached.any;
    json["unreached"] = report.reached.unreached;
    json["detail"] = report.detail;
    add(json, report.throughput);
    json["lost"] = report.lost ? Json(*report.lost) : Json(nullptr);
    json["surplus"] = report.surplus;
    if (report.throughput.passed_over > 0) json["passed_over"] = report.throughput.passed_over;
    json["connections"] = report.connections;
    json["restarts"] = report.restarts;
    json["unknown_tails"] = report.unknown_tails;
    json["missing"] = report.pattern.lost;
    json["reordered"] = report.pattern.reordered;
    json["corrupt"] = report.pattern.corrupt;
    json["truncated"] = report.pattern.truncated;
    json["duplicates"] = report.pattern.duplicates;
    json["verified"] = report.verified;
    if (report.latency) {
        json["latency"] = {
            {"messages", report.latency->messages},    {"ahead", report.latency->ahead},
            {"p50_us", report.latency->p50_us},        {"p90_us", report.latency->p90_us},
            {"p99_us", report.latency->p99_us},        {"p99_9_us", report.latency->p99_9_us},
            {"longest_us", report.latency->longest_us}};
    }
    Rows rows{json["fids"], report.fids.size()};
    for (const FidReport& fid : report.fids) {
        Json& row = rows.add(fid.fid, {{"messages", fid.messages},
                                       {"bytes", fid.bytes},
                                       {"lost", fid.lost},
                                       {"surplus", fid.surplus}});
        if (fid.first) row["first"] = *fid.first;
    }
    return json_line(json);
}

std::string to_text(const PublishReport& report) {
    const std::string name = report.name.empty() ? "" : " " + report.name;
    const std::string loops = report.loops > 1 ? fmt::format(", {} loops", report.loops) : "";
    std::string text = fmt::format("publisher{} ({}, {}{}): {}\n", name, report.provider,
                                   report.mode, loops, report.end) +
                       text_of(report.throughput);
    if (report.without_subscribers > 0) {
        text += fmt::format("  {} messages without subscribers\n", report.without_subscribers);
    }
    if (report.dropped > 0) {
        text += fmt::format("  {} messages dropped for slow subscribers\n", report.dropped);
    }
    if (report.disconnected > 0) {
        text += fmt::format("  {} subscribers were lost or disconnected\n", report.disconnected);
    }
    if (report.unconfirmed > 0) {
        text += fmt::format("  {} subscribers did not confirm that they received everything\n",
                            report.unconfirmed);
    }
    for (const TriggerReport& trigger : report.triggers) {
        text += fmt::format("  trigger {}: {} events, delayed by {:.3f} s\n", trigger.name,
                            trigger.events, trigger.put_off_s);
    }
    if (report.faults) {
        text += fmt::format(
            "  injected faults: {} missing, {} corrupt, {} late, {} duplicates, {} truncated\n",
            report.faults->missing, report.faults->corrupted, report.faults->late,
            report.faults->duplicated, report.faults->truncated);
    }
    return text;
}

std::string to_text(const std::vector<PublishReport>& reports) {
    std::string text;
    for (const PublishReport& report : reports)
        text += to_text(report);
    return text;
}

std::string to_text(const SubscribeReport& report) {
    std::string text =
        fmt::format("subscriber ({}, {}): {}, {}\n",
                    report.provider.empty() ? "no connection" : report.provider, report.mode,
                    report.end, report.outcome) +
        text_of(report.throughput) +
        (report.lost
             ? fmt::format("  {} fids, {} messages lost\n", report.fids.size(), *report.lost)
             : fmt::format("  {} fids, number of lost messages unknown\n", report.fids.size()));
    if (report.surplus > 0) {
        text += fmt::format("  {} messages more than the publisher sent\n", report.surplus);
    }
    if (report.connections > 1) {
        text += fmt::format("  {} connections, {} times to a publisher that had restarted\n",
                            report.connections, report.restarts);
    }
    if (report.throughput.passed_over > 0)
        text += fmt::format("  {} of them skipped (--prescale)\n", report.throughput.passed_over);
    if (report.unknown_tails > 0) {
        text += fmt::format(
            "  {} publishers ended without reporting how many messages they published\n",
            report.unknown_tails);
    }
    if (report.reached.unreached > 0) {
        text += fmt::format("  {} publishers accepted no subscription\n", report.reached.unreached);
    }
    if (report.verified) {
        text += fmt::format("  verified: {} missing, {} corrupt, {} reordered, {} duplicates, "
                            "{} truncated\n",
                            report.pattern.lost, report.pattern.corrupt, report.pattern.reordered,
                            report.pattern.duplicates, report.pattern.truncated);
    }
    if (report.latency) {
        text += fmt::format("  one-way latency: 50 % {:.1f} us, 90 % {:.1f}, 99 % {:.1f}, "
                            "99.9 % {:.1f}, longest {:.1f}\n",
                            report.latency->p50_us, report.latency->p90_us, report.latency->p99_us,
                            report.latency->p99_9_us, report.latency->longest_us);
        if (report.latency->ahead > 0) {
            text += fmt::format("  {} arrived before they were sent: the clocks differ\n",
                                report.latency->ahead);
        }
    }
    return text;
}

std::string live_line(const Throughput& interval, std::uint64_t messages,
                      std::optional<std::uint64_t> lost) {
    std::string line =
        fmt::format("{}messages/s  {:.3f} Gb/s  {} messages",
                    short_number(interval.messages_per_s()), interval.gbit_per_s(), messages);
    if (lost) line += fmt::format("  {} lost", *lost);
    return line;
}

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
