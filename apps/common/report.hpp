// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/pattern.hpp"
#include "pubsub/core/fid.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

// The exit status and the reports of the programs: text for people and one JSON object per line for
// programs. No I/O.

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

} // namespace apps
