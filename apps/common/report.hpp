// SPDX-License-Identifier: Apache-2.0
#pragma once

// Output for people: escaping, reports, standard error, and the status line of a terminal.
//
// External text (from a peer, a server, a file, the command line) is escaped once, at the sink: by
// the log (apps/common/logging.hpp), by print_report() and tell_standard_error(), and by code
// that puts it into a line of a table.

#include "apps/common/io.hpp"
#include "apps/common/pattern.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/core/fid.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

// Whether line ends and tabs belong to the layout of the text, or are part of external text.
enum class Lines : std::uint8_t { one, several };

// Returns the text without invisible characters and without characters that control a terminal or
// forge a line. Line ends and tabs become \n, \r and \t; other characters listed in
// netio/base/control_characters.hpp become \uXXXX, as in JSON, so that a JSON text stays valid;
// bytes that are not UTF-8 become \xXX. Escaped text is unchanged. The result has at most
// `limit_bytes`.
std::string printable(std::string_view text, std::size_t limit_bytes = 1024,
                      Lines lines = Lines::one);
// Returns whether printable() would return the text unchanged, apart from its length limit.
bool is_printable(std::string_view text, Lines lines = Lines::one);

// Writes the result of a program to standard output, after the log lines that explain it. Escapes
// the text, but keeps line ends and tabs. Waits for a slow reader until a signal asks the program
// to end. Throws std::runtime_error if the text cannot be written: a lost report is a failure.
void print_report(std::string_view text, int descriptor = STDOUT_FILENO);

// Writes one or two lines to standard error, for messages that cannot go to the log. Stops trying
// after one second: a stopped reader, a closed pipe or a full disk never blocks the program. Any
// thread. Escapes as print_report().
void tell_standard_error(std::string_view text) noexcept;

// Returns the width of standard output's terminal; 80 if it is unknown.
std::size_t terminal_columns();

// Returns the sequence that replaces the current line by `line`: return to its start and clear the
// rest. `line` is cut to `columns` (at least 2), because a wrapped line could not be replaced.
std::string in_its_place(std::string_view line, std::size_t columns);

// Writes as much to standard output's terminal as it accepts now: a stopped terminal does not block
// the program. Returns whether the terminal accepted anything.
bool put_on_terminal(std::string_view text);

// The exit status and the reports of the programs: text for people and one JSON object per line for
// programs; and their output while they run.

// docs/operations.md, "Exit status".

enum class ExitStatus : int {
    done = 0,        // everything that was requested is done
    failed = 1,      // an error; see the log
    wrong_usage = 2, // a wrong command line
    unreached = 3,   // no publisher ever accepted the subscription
    nothing = 4,     // the subscription was accepted, but no message arrived
    incomplete = 5,  // ended early, or messages are known to be lost
    unsound = 6,     // verified or recorded data: lost, surplus, reordered, damaged
};

constexpr std::string_view to_string(ExitStatus status) noexcept {
    switch (status) {
    case ExitStatus::done:
        return "done";
    case ExitStatus::failed:
        return "failed";
    case ExitStatus::wrong_usage:
        return "wrong usage";
    case ExitStatus::unreached:
        return "unreached";
    case ExitStatus::nothing:
        return "nothing";
    case ExitStatus::incomplete:
        return "incomplete";
    case ExitStatus::unsound:
        return "unsound";
    }
    return "?";
}

constexpr int to_integer(ExitStatus status) noexcept {
    return static_cast<int>(status);
}

// Returns a JSON text on one line, without a line end. Bytes that are not UTF-8, for instance in a
// file name, become U+FFFD, because dump() would throw.
template <typename Json>
std::string json_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The version of all JSON reports (docs/reports.md). It changes if a field is removed or its
// meaning changes, not if a field is added.
inline constexpr unsigned report_version = 1;

struct Throughput {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::uint64_t passed_over = 0; // messages that --prescale skipped

    double messages_per_s() const noexcept {
        return seconds > 0 ? static_cast<double>(messages) / seconds : 0;
    }
    double gbit_per_s() const noexcept {
        return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
    }
};

// Formats three digits and a prefix k, M, G or T for a unit: "1.23 M", "7 ".
std::string short_number(double value);

// The messages that a publisher has published for a fid, with or without subscribers.
struct PublishedFid {
    netio::pubsub::Fid fid{};
    std::uint64_t messages = 0;
};

struct TriggerReport {
    std::string name;
    std::uint64_t events = 0;
    double put_off_s = 0; // delay of the schedule
};

struct PublishReport {
    std::string name;      // if there are several publishers
    std::size_t loops = 1; // number of loops in these sums
    std::string provider;  // several: joined by '+'
    std::string mode;      // buffered, unbuffered
    std::string end;       // finished, interrupted, duration, failed
    Throughput throughput;
    std::uint64_t without_subscribers = 0;
    std::uint64_t again = 0;
    std::uint64_t dropped = 0;
    std::uint64_t pages = 0;
    std::uint64_t disconnected = 0; // lost or disconnected subscribers
    std::uint64_t unconfirmed = 0;  // subscribers that did not confirm all messages at the end
    std::vector<TriggerReport> triggers;
    std::optional<FaultCounts> faults; // injected on purpose
    std::vector<PublishedFid> fids;
};

struct FidReport {
    netio::pubsub::Fid fid{};
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t surplus = 0;
    std::optional<std::uint64_t>
        first; // if verified: the number of messages before the first received one
};

// Latency of messages with a time stamp, between the publisher's clock and this machine's clock.
// Accurate to 25 %, except the longest.
struct LatencyReport {
    std::uint64_t messages = 0;
    std::uint64_t ahead = 0; // arrived "before" they were sent, because the clocks differ
    double p50_us = 0;
    double p90_us = 0;
    double p99_us = 0;
    double p99_9_us = 0;
    double longest_us = 0;
};

struct SubscribeReport {
    std::string provider;
    std::string mode;    // buffered, unbuffered, mixed, fragments (of either), none
    std::string end;     // orderly, lost, messages, duration, interrupted, refused, failed
    std::string outcome; // name of the exit status
    std::string detail;
    struct Reached {
        bool any = false;            // a publisher has accepted a subscription
        std::uint64_t unreached = 0; // publishers given by address that accepted no subscription
    };
    Reached reached;
    std::uint64_t connections = 0;
    std::uint64_t restarts = 0; // times that another publisher answered at the same address
    // Publishers that ended without a report of how much they had published.
    std::uint64_t unknown_tails = 0;
    Throughput throughput;
    std::optional<std::uint64_t> lost; // absent if unknown
    std::uint64_t surplus = 0;         // messages in excess of the publisher's count
    bool verified = false;
    PatternCounts pattern; // if verified
    std::optional<LatencyReport> latency;
    std::vector<FidReport> fids;
};

// Returns one line without a line end.
std::string to_json(const PublishReport& report);
// Returns the reports of all publishers of a process in one object; a single report as above.
std::string to_json(const std::vector<PublishReport>& reports);
std::string to_json(const SubscribeReport& report);
// Returns several lines, each with a line end.
std::string to_text(const PublishReport& report);
std::string to_text(const std::vector<PublishReport>& reports);
std::string to_text(const SubscribeReport& report);
// Returns the progress line for a terminal: the last interval and the sums.
std::string live_line(const Throughput& interval, std::uint64_t messages,
                      std::optional<std::uint64_t> lost);

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
