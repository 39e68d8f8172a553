// SPDX-License-Identifier: Apache-2.0
#include "apps/common/logging.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/report.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/context.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace apps {

LimitedLog::LimitedLog(netio::EventLoop& loop, Write write, const Limit& limit)
    : write_{std::move(write)}, limit_{limit}, timer_{loop, [this] { write_suppressed(); }} {}

LimitedLog::~LimitedLog() {
    write_suppressed();
}

void LimitedLog::note(std::string line) {
    if (!timer_.armed()) {
        written_ = 0;
        timer_.start(limit_.interval);
    }
    if (written_ < limit_.lines) {
        ++written_;
        return write_(line);
    }
    ++suppressed_;
    last_ = std::move(line);
}

void LimitedLog::write_suppressed() {
    if (suppressed_ == 0) return;
    const std::uint64_t others = std::exchange(suppressed_, 0) - 1;
    written_ = 1; // in the interval that begins now
    timer_.start(limit_.interval);
    write_(others == 0 ? last_ : fmt::format("{} (and {} before it)", last_, others));
}

PeerLog::PeerLog(netio::EventLoop& loop)
    : PeerLog{loop, [](const std::string& line) { spdlog::info("{}", line); },
              [](const std::string& line) { spdlog::warn("{}", line); },
              [](const std::string& line) { spdlog::error("{}", line); }} {}

using DeviceEventKind = netio::DeviceEvent::Kind;

namespace {

// Subscribers may become slow and recover frequently: one line and one summary per minute.
constexpr LimitedLog::Limit slow_limit{.lines = 1, .interval = std::chrono::minutes{1}};

double seconds(netio::Duration time) {
    return std::chrono::duration<double>(time).count();
}

} // namespace

std::string line_of(const netio::DeviceEvent& event) {
    const std::string who =
        event.port == 0 ? event.device : fmt::format("port {} of {}", event.port, event.device);
    switch (event.kind) {
    case DeviceEventKind::port_up:
        return who + " is active";
    case DeviceEventKind::port_down:
        return who + " is down";
    case DeviceEventKind::device_failed:
        return who + " has failed";
    case DeviceEventKind::changed:
        break;
    }
    return who + ": " + event.what;
}

LogObserver::LogObserver(netio::EventLoop& loop)
    : LogObserver{loop,
                  {.debug = [](const std::string& line) { spdlog::debug("{}", line); },
                   .info = [](const std::string& line) { spdlog::info("{}", line); },
                   .warning = [](const std::string& line) { spdlog::warn("{}", line); },
                   .error = [](const std::string& line) { spdlog::error("{}", line); }}} {}

LogObserver::LogObserver(netio::EventLoop& loop, const Levels& levels)
    : loop_{loop}, sessions_{loop, levels.debug}, rejected_{loop, levels.warning, 1},
      accept_failed_{loop, levels.warning, 1}, not_admitted_{loop, levels.warning},
      refused_{loop, levels.warning}, routes_{loop, levels.info}, stalled_{loop, levels.info,
                                                                           slow_limit},
      warnings_{loop, levels.warning}, news_{loop, levels.info}, errors_{loop, levels.error} {
    loop_.observer = this;
}

LogObserver::~LogObserver() {
    if (loop_.observer == this) loop_.observer = nullptr;
}

void LogObserver::on_peer_connected(const netio::PeerConnected& event) {
    sessions_.note(fmt::format("{} is connected over {}", event.peer, event.provider));
}

void LogObserver::on_peer_disconnected(const netio::PeerDisconnected& event) {
    sessions_.note(
        fmt::format("the session with {} has ended: {}", event.peer, explain(event.closed)));
}

void LogObserver::on_peer_rejected(const netio::PeerRejected& event) {
    rejected_.note(fmt::format("{} is rejected: {}", event.peer, event.why));
}

void LogObserver::on_accept_failed(const netio::AcceptFailed& event) {
    accept_failed_.note(fmt::format("{} is rejected: {}", event.peer, event.why.what()));
}

void LogObserver::on_not_admitted(const netio::NotAdmitted& event) {
    const std::string claimed = event.key == 0 ? "" : fmt::format(" (key {})", event.key);
    not_admitted_.note(fmt::format("{}{} is not admitted: {}", event.peer, claimed, event.why));
}

void LogObserver::on_request_refused(const netio::RequestRefused& event) {
    refused_.note(fmt::format("the request of {} is refused: {}", event.peer, event.why));
}

void LogObserver::on_no_history(const netio::NoHistory& event) {
    warnings_.note(fmt::format("publisher {} keeps no history: only new messages arrive; set its "
                               "history_limit",
                               event.peer));
}

void LogObserver::on_key_file_problem(const std::string& problem) {
    errors_.note(problem);
}

void LogObserver::on_key_revoked(const netio::KeyRevoked& event) {
    warnings_.note(fmt::format("key {} was removed or changed: {} connections are closed",
                               event.key, event.sessions));
}

// The command itself reports the last failure.
void LogObserver::on_route_failed(const netio::RouteFailed& event) {
    if (event.is_last) return;
    routes_.note(fmt::format("cannot connect over {}: {}", event.provider, explain(event.closed)));
}

void LogObserver::on_provider_unused(const netio::ProviderUnused& event) {
    warnings_.note(fmt::format("no peer can connect over {} at {}: {}", event.provider,
                               to_string(event.address), event.why));
}

void LogObserver::on_peer_stalled(const netio::PeerStalled& event) {
    stalled_.note(fmt::format("subscriber {} is slow: no progress for {:.1f} s{}; reduce its load, "
                              "or let it subscribe with policy drop or newest",
                              event.peer, seconds(event.stalled),
                              event.blocks_publisher ? ", publishing is blocked" : ""));
}

void LogObserver::on_peer_recovered(const netio::PeerRecovered& event) {
    stalled_.note(fmt::format("subscriber {} makes progress again after {:.1f} s", event.peer,
                              seconds(event.stalled)));
}

void LogObserver::on_device_event(const netio::DeviceEvent& event) {
    const bool bad =
        event.kind == DeviceEventKind::port_down || event.kind == DeviceEventKind::device_failed;
    (bad ? warnings_ : news_).note(line_of(event));
}

namespace {

int priority_of(spdlog::level::level_enum level) {
    switch (level) {
    case spdlog::level::critical:
        return 2;
    case spdlog::level::err:
        return 3;
    case spdlog::level::warn:
        return 4;
    case spdlog::level::info:
        return 6;
    default:
        return 7;
    }
}

std::string_view colour_of(spdlog::level::level_enum level) {
    switch (level) {
    case spdlog::level::critical:
    case spdlog::level::err:
        return "\x1b[31m";
    case spdlog::level::warn:
        return "\x1b[33m";
    default:
        return "\x1b[32m";
    }
}

// Much of the logged text comes from peers, servers and files. It always becomes one line.
std::string shown_line(std::string_view text) {
    std::string shown = printable(text, BackgroundLog::line_limit_bytes);
    if (text.size() > BackgroundLog::line_limit_bytes)
        shown += fmt::format(" ... ({} bytes in total)", text.size());
    return shown;
}

// Returns 0, or the errno if the text cannot be written; `text` is then the unwritten rest.
int write_all(int descriptor, std::string_view& text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (written < 0 && errno == EAGAIN) { // another process made it non-blocking
            pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
            ::poll(&waiting, 1, -1);
        } else if (written == 0) {
            return EIO;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

} // namespace

struct BackgroundLog::Queue {
    Queue(int to, std::size_t limit_count, OnBroken broken)
        : descriptor{to}, limit{limit_count}, on_broken{std::move(broken)} {}

    void put(std::string line) {
        const std::lock_guard lock{mutex};
        if (lines.size() >= limit) {
            lines.pop_front();
            ++untold;
            leave_out();
        }
        lines.push_back(std::move(line));
        changed.notify_all();
    }
    void write() {
        for (;;) {
            std::string text;
            std::uint64_t missing = 0;
            {
                std::unique_lock lock{mutex};
                writing = false;
                changed.notify_all();
                changed.wait(lock, [&] { return !lines.empty() || ending; });
                if (lines.empty()) return;
                writing = true;
                if (next_descriptor >= 0) {
                    ::close(std::exchange(descriptor, std::exchange(next_descriptor, -1)));
                    torn = false;
                }
                missing = std::exchange(untold, 0);
                if (torn) text = "\n";
                if (missing > 0)
                    text += fmt::format("{} lines of the log are lost here\n", missing);
                text += lines.front();
                lines.pop_front();
            }
            std::string_view left = text;
            const int error = write_all(descriptor, left);
            const std::size_t written = text.size() - left.size();
            if (written > 0) torn = text[written - 1] != '\n';
            if (error == 0) continue;
            if (const OnBroken told = std::exchange(on_broken, {})) told(error);
            const std::lock_guard lock{mutex};
            untold += missing + 1;
            leave_out();
        }
    }

    void leave_out() {
        ++left_out;
        ++lines_left_out_of_log();
    }

    std::mutex mutex;
    std::condition_variable changed;
    int descriptor;           // used by the thread only
    int next_descriptor = -1; // for the next lines; -1: unchanged
    std::size_t limit;
    OnBroken on_broken; // used by the thread only; empty: already called
    bool torn = false;  // used by the thread only: the log ends within a line
    std::deque<std::string> lines;
    std::uint64_t untold = 0; // lines lost since the last written one
    std::uint64_t left_out = 0;
    bool writing = false;
    bool ending = false;
};

BackgroundLog::BackgroundLog(int descriptor, Style style, std::size_t limit, OnBroken on_broken)
    : style_{style}, queue_{std::make_shared<Queue>(descriptor, limit, std::move(on_broken))} {
    // SIGPIPE is blocked, too: a write reports that the reader is closed.
    const netio::AllSignalsBlocked blocked;
    std::thread{[queue = queue_] { queue->write(); }}.detach();
}

BackgroundLog::~BackgroundLog() {
    const std::lock_guard lock{queue_->mutex};
    queue_->ending = true;
    queue_->changed.notify_all();
}

void BackgroundLog::go_on_in(int descriptor) {
    const std::lock_guard lock{queue_->mutex};
    if (queue_->next_descriptor >= 0) ::close(queue_->next_descriptor);
    queue_->next_descriptor = descriptor;
}

bool BackgroundLog::finish(std::chrono::milliseconds timeout) {
    std::unique_lock lock{queue_->mutex};
    return queue_->changed.wait_for(lock, timeout,
                                    [&] { return queue_->lines.empty() && !queue_->writing; });
}

std::uint64_t BackgroundLog::left_out() const {
    const std::lock_guard lock{queue_->mutex};
    return queue_->left_out;
}

void BackgroundLog::sink_it_(const spdlog::details::log_msg& original) {
    spdlog::memory_buf_t formatted;
    spdlog::details::log_msg message = original;
    const std::string shown = shown_line({original.payload.data(), original.payload.size()});
    message.payload = shown;
    formatter_->format(message, formatted);
    std::string line{formatted.data(), formatted.size()};
    if (style_ == Style::journal) line = fmt::format("<{}>{}", priority_of(message.level), line);
    if (style_ == Style::coloured && message.color_range_end > message.color_range_start) {
        line.insert(message.color_range_end, "\x1b[m");
        line.insert(message.color_range_start, colour_of(message.level));
    }
    queue_->put(std::move(line));
}

namespace {

std::string_view environment(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : std::string_view{};
}

// systemd names its stream in JOURNAL_STREAM; the descriptor may have been redirected since.
bool is_journal(int descriptor) {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 &&
           environment("JOURNAL_STREAM") == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

BackgroundLog::Style style_of(int descriptor) {
    if (is_journal(descriptor)) return BackgroundLog::Style::journal;
    // https://no-color.org: any value that is not empty.
    const bool plain = !environment("NO_COLOR").empty() || ::isatty(descriptor) != 1 ||
                       environment("TERM") == "dumb";
    return plain ? BackgroundLog::Style::plain : BackgroundLog::Style::coloured;
}

int opened(const std::string& file) {
    if (file.empty()) return STDERR_FILENO;
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0)
        throw std::system_error{errno, std::generic_category(), "cannot write the log " + file};
    return descriptor;
}

// Waits for SIGHUP in a thread of its own: a log rotator renames the file and sends the signal, and
// later lines go to a new file with the old name. No other thread receives the signal.
void reopen_at_hang_up(const std::string& file, const std::shared_ptr<BackgroundLog>& log) {
    sigset_t hang_up;
    ::sigemptyset(&hang_up);
    ::sigaddset(&hang_up, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &hang_up, nullptr);
    // The thread blocks all other signals: a signal that ends the program is for the event loop.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    std::thread{[hang_up, file, log] {
        for (int number = 0; ::sigwait(&hang_up, &number) == 0;) {
            try {
                log->go_on_in(opened(file));
                spdlog::info("reopened the log {} (SIGHUP)", file);
            } catch (const std::system_error& error) {
                spdlog::error("{}; the log continues in the old file (SIGHUP)", error.what());
            }
        }
    }}.detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Reports on standard error, once, that the log cannot be written.
BackgroundLog::OnBroken teller_of(const std::string& file) {
    if (file.empty()) return {};
    return [file](int error) {
        tell_standard_error(
            fmt::format("netio: cannot write the log {}: {}; its lines are lost and counted\n",
                        file, std::generic_category().message(error)));
    };
}

} // namespace

void add_log(CLI::App& command, LogArguments& arguments) {
    command.add_option("--log-level", arguments.level, "debug, info, warning or error")
        ->capture_default_str()
        ->check(one_of({"debug", "info", "warning", "error"}));
    command.add_option(
        "--log-file", arguments.file,
        "Append the log to this file instead of standard error; SIGHUP reopens it, for logrotate");
}

ProgramLog::ProgramLog(const LogArguments& arguments) : file_{arguments.file} {
    const int descriptor = opened(arguments.file);
    const BackgroundLog::Style style = style_of(descriptor);
    log_ = std::make_shared<BackgroundLog>(descriptor, style, BackgroundLog::waiting_limit,
                                           teller_of(file_));
    auto logger = std::make_shared<spdlog::logger>("netio", log_);
    logger->set_level(spdlog::level::from_str(arguments.level));
    // The journal adds the time itself.
    logger->set_pattern(
        style == BackgroundLog::Style::journal ? "%v" : "%Y-%m-%d %H:%M:%S.%e%z %^%l%$ %v");
    spdlog::set_default_logger(std::move(logger));
    if (!file_.empty()) reopen_at_hang_up(file_, log_);
    netio::set_log([](std::string_view line) { spdlog::warn("{}", line); });
}

ProgramLog::~ProgramLog() {
    netio::set_log({});
    log_->finish(BackgroundLog::flush_limit);
    if (const auto count = log_->left_out(); count > 0 && !file_.empty())
        tell_standard_error(fmt::format("netio: {} lines of the log {} were lost\n", count, file_));
}

SubscriberLog::SubscriberLog(netio::EventLoop& loop)
    : SubscriberLog{loop, [](const std::string& line) { spdlog::info("{}", line); },
                    [](const std::string& line) { spdlog::warn("{}", line); }} {}

SubscriberLog::SubscriberLog(netio::EventLoop& loop, LimitedLog::Write inform,
                             LimitedLog::Write warn)
    : log_{loop, std::move(inform)}, warnings_{loop, std::move(warn)}, timer_{loop,
                                                                              [this] { tell(); }} {}

void SubscriberLog::subscribed(const netio::pubsub::SubscriberPeer& peer,
                               const netio::pubsub::FidRange& range) {
    if (!ranges_.empty() && peer.id != peer_.id) tell();
    peer_ = peer;
    subscribed_.insert(peer.id);
    if (ranges_.empty()) timer_.start(netio::Duration::zero());
    ranges_.add(range);
}

void SubscriberLog::tell() {
    if (ranges_.empty()) return;
    log_.note(fmt::format("{} subscribes to {}", peer_.address, ranges_.take()));
}

void SubscriberLog::closed(const netio::pubsub::SubscriberPeer& peer, const netio::Closed& closed) {
    tell();
    using netio::CloseReason;
    const bool in_order =
        closed.reason == CloseReason::local || closed.reason == CloseReason::orderly;
    if (subscribed_.erase(peer.id) > 0 && ending_ && !in_order) ++unconfirmed_;
    if (in_order) {
        log_.note(fmt::format("{} has disconnected", peer.address));
    } else if (closed.reason == CloseReason::unconfirmed) {
        log_.note(fmt::format("{} has disconnected: {}", peer.address, explain(closed)));
    } else {
        ++disconnected_;
        warnings_.note(fmt::format("{}: {}", peer.address, explain(closed)));
    }
}

} // namespace apps
