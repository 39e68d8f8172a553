// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/observer.hpp"
#include "netio/loop/event_loop.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace apps {

// The program's log of events that peers and the libraries report. All classes here belong to the
// loop's thread.

// Rate limit for log lines that peers can cause at any rate. The first lines of an interval are
// written immediately. At the end of the interval the last suppressed line is written, with the
// number of the other suppressed lines.
class LimitedLog {
  public:
    using Write = std::function<void(const std::string& line)>;
    static constexpr std::chrono::seconds interval{10};
    static constexpr std::uint64_t lines_per_interval = 100;

    struct Limit {
        std::uint64_t lines = lines_per_interval;
        netio::Duration interval = LimitedLog::interval;
    };
    LimitedLog(netio::EventLoop& loop, Write write, std::uint64_t limit = lines_per_interval)
        : LimitedLog{loop, std::move(write), Limit{.lines = limit, .interval = interval}} {}
    LimitedLog(netio::EventLoop& loop, Write write, const Limit& limit);
    // Writes the last suppressed line.
    ~LimitedLog();
    LimitedLog(const LimitedLog&) = delete;
    LimitedLog& operator=(const LimitedLog&) = delete;

    void note(std::string line);

  private:
    void write_suppressed();

    Write write_;
    Limit limit_;
    std::uint64_t written_ = 0; // in this interval
    std::uint64_t suppressed_ = 0;
    std::string last_;   // suppressed line
    netio::Timer timer_; // armed during an interval
};

// Log lines of a server about its peers, with a rate limit for each level.
class PeerLog {
  public:
    // Writes to the program's log.
    explicit PeerLog(netio::EventLoop& loop);
    PeerLog(netio::EventLoop& loop, const LimitedLog::Write& info, const LimitedLog::Write& warning,
            const LimitedLog::Write& error)
        : info_{loop, info}, warnings_{loop, warning}, errors_{loop, error} {}

    void info(std::string line) { info_.note(std::move(line)); }
    void warn(std::string line) { warnings_.note(std::move(line)); }
    void error(std::string line) { errors_.note(std::move(line)); }

  private:
    LimitedLog info_;
    LimitedLog warnings_;
    LimitedLog errors_;
};

// Writes the events of the libraries (netio/base/observer.hpp) to the log, with a rate limit for
// each kind of event.

// Formats one log line.
std::string line_of(const netio::DeviceEvent& event);

class LogObserver final : public netio::Observer {
  public:
    struct Levels {
        LimitedLog::Write debug, info, warning, error;
    };

    // Writes to the program's log. Observes the loop until this object is destroyed.
    explicit LogObserver(netio::EventLoop& loop);
    LogObserver(netio::EventLoop& loop, const Levels& levels);
    ~LogObserver();
    LogObserver(const LogObserver&) = delete;
    LogObserver& operator=(const LogObserver&) = delete;

  private:
    void on_peer_connected(const netio::PeerConnected& event) override;
    void on_peer_disconnected(const netio::PeerDisconnected& event) override;
    void on_peer_rejected(const netio::PeerRejected& event) override;
    void on_accept_failed(const netio::AcceptFailed& event) override;
    void on_not_admitted(const netio::NotAdmitted& event) override;
    void on_request_refused(const netio::RequestRefused& event) override;
    void on_no_history(const netio::NoHistory& event) override;
    void on_key_file_problem(const std::string& problem) override;
    void on_key_revoked(const netio::KeyRevoked& event) override;
    void on_route_failed(const netio::RouteFailed& event) override;
    void on_provider_unused(const netio::ProviderUnused& event) override;
    void on_peer_stalled(const netio::PeerStalled& event) override;
    void on_peer_recovered(const netio::PeerRecovered& event) override;
    void on_device_event(const netio::DeviceEvent& event) override;

    netio::EventLoop& loop_;
    LimitedLog sessions_;
    LimitedLog rejected_;
    LimitedLog accept_failed_;
    LimitedLog not_admitted_;
    LimitedLog refused_;
    LimitedLog routes_;
    LimitedLog stalled_;
    LimitedLog warnings_;
    LimitedLog news_;
    LimitedLog errors_;
};

// Number of lost lines of this program's log, because the reader was too slow or because writing
// failed. Any thread.

inline std::atomic<std::uint64_t>& lines_left_out_of_log() noexcept {
    static std::atomic<std::uint64_t> count{0};
    return count;
}

} // namespace apps
