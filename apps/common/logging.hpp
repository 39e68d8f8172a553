// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/fid_text.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/core/fid_layout.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace CLI {
class App;
} // namespace CLI

namespace apps {

// The program's log of events that peers and the libraries report. Its limits belong to
// the loop's thread; the sink writes on a thread of its own.

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

// Writes the lines of a log in a thread of its own, so that a slow reader, a stopped terminal or a
// full disk never blocks the program. At most `waiting_limit` lines are queued; beyond, the oldest
// lines are lost, and a line with their number takes their place. Lines that cannot be written
// count as lost, too.

class BackgroundLog final : public spdlog::sinks::base_sink<std::mutex> {
  public:
    static constexpr std::size_t waiting_limit = 8192;    // lines
    static constexpr std::chrono::seconds flush_limit{1}; // a flush waits no longer than this
    static constexpr std::size_t line_limit_bytes = 8192; // a longer line is cut

    enum class Style : std::uint8_t {
        plain,
        coloured,
        journal, // a priority before each line, as systemd reads it (sd-daemon(3))
    };
    // Called with the errno in the log's own thread for the first line that cannot be written.
    using OnBroken = std::function<void(int error)>;

    // The descriptor must stay open until everything is written.
    BackgroundLog(int descriptor, Style style, std::size_t limit = waiting_limit,
                  OnBroken on_broken = {});
    ~BackgroundLog() override;
    BackgroundLog(const BackgroundLog&) = delete;
    BackgroundLog& operator=(const BackgroundLog&) = delete;

    // Writes later lines to this descriptor, and closes the previous one.
    void go_on_in(int descriptor);
    // Waits until everything is written, at most for `timeout`. Returns whether it is.
    bool finish(std::chrono::milliseconds timeout);
    std::uint64_t left_out() const;

  protected:
    // Escapes the text (apps/common/report.hpp).
    void sink_it_(const spdlog::details::log_msg& original) override;
    // Waits as finish(), so that the program's next output comes after its log.
    void flush_() override { finish(flush_limit); }

  private:
    struct Queue; // shared with the thread, which may outlive this
    Style style_;
    std::shared_ptr<Queue> queue_;
};

// Where the program's log goes: standard error, the systemd journal, or a file.

struct LogArguments {
    std::string level = "info";
    std::string file; // empty: standard error
};
// --log-level and --log-file.
void add_log(CLI::App& command, LogArguments& arguments);

class ProgramLog {
  public:
    // Construct before other threads start. With a file, SIGHUP reopens the file and does not end
    // the program: the signal is blocked in this thread, and end_signals() leaves it out. Throws
    // std::system_error if the file cannot be written.
    explicit ProgramLog(const LogArguments& arguments);
    // Waits up to `flush_limit` for a slow reader. Reports on standard error how many lines the
    // file lacks.
    ~ProgramLog();
    ProgramLog(const ProgramLog&) = delete;
    ProgramLog& operator=(const ProgramLog&) = delete;

  private:
    std::string file_;
    std::shared_ptr<BackgroundLog> log_;
};

// A test publisher's log of its subscribers and their number: connections, subscriptions, and
// reasons of disconnects. Subscribers decide how often these occur, so the subscriptions of one
// turn of the loop are combined into one line per subscriber, and the rate of lines is limited.
// Belongs to the loop's thread.

class SubscriberLog {
  public:
    explicit SubscriberLog(netio::EventLoop& loop);
    SubscriberLog(netio::EventLoop& loop, LimitedLog::Write inform, LimitedLog::Write warn);

    // Shows fids by the layout's fields.
    void decode_by(const netio::pubsub::FidLayout* layout) noexcept { ranges_.decode_by(layout); }
    void subscribed(const netio::pubsub::SubscriberPeer& peer,
                    const netio::pubsub::FidRange& range);
    void closed(const netio::pubsub::SubscriberPeer& peer, const netio::Closed& closed);
    // Connected subscribers with at least one subscription.
    std::size_t subscriber_count() const noexcept { return subscribed_.size(); }
    // Subscribers that were lost or disconnected.
    std::uint64_t disconnected() const noexcept { return disconnected_; }
    // Call it when the publisher begins to close: a subscriber that closes after that must have
    // received everything.
    void begin_end() noexcept { ending_ = true; }
    // Subscribers at the beginning of the end that are not known to have received everything: they
    // did not close in order, or are still connected.
    std::uint64_t unconfirmed() const noexcept { return unconfirmed_ + subscribed_.size(); }

  private:
    void tell();

    LimitedLog log_;
    LimitedLog warnings_;
    netio::pubsub::SubscriberPeer peer_;
    RangeLine ranges_; // of peer_, not logged yet
    netio::Timer timer_;
    std::set<netio::pubsub::SubscriberId> subscribed_;
    std::uint64_t disconnected_ = 0;
    std::uint64_t unconfirmed_ = 0;
    bool ending_ = false;
};

} // namespace apps
