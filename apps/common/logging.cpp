// SPDX-License-Identifier: Apache-2.0
#include "apps/common/logging.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

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
                              event.holds_up_publisher ? ", publishing is blocked" : ""));
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

} // namespace apps
