// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program says while it runs and at its end: for people and, as one JSON object on a line,
// for programs. No I/O.

#include "apps/common/fault_counts.hpp"
#include "apps/common/pattern.hpp"
#include "pubsub/core/fid.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace apps {

// Of all reports in JSON (docs/reports.md): a field that is taken away, or means something else,
// makes it another; one that is added does not.
inline constexpr unsigned report_version = 1;

struct Throughput {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    std::uint64_t passed_over = 0; // of the messages: not worked on (--prescale)

    double messages_per_s() const noexcept {
        return seconds > 0 ? static_cast<double>(messages) / seconds : 0;
    }
    double gbit_per_s() const noexcept {
        return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
    }
};

// Three digits, and k, M, G or T to put before a unit: "1.23 M", "7 ".
std::string short_number(double value);

// What a publisher has published of a fid; also what nobody wanted.
struct PublishedFid {
    netio::pubsub::Fid fid{};
    std::uint64_t messages = 0;
};

struct TriggerReport {
    std::string name;
    std::uint64_t events = 0;
    double put_off_s = 0; // what followed came so much later than it was meant to
};

struct PublishReport {
    std::string name;      // of one of several
    std::size_t loops = 1; // that it is the sum of
    std::string provider;  // several: joined by '+'
    std::string mode;      // buffered, unbuffered
    std::string end;       // finished, interrupted, duration, failed
    Throughput throughput;
    std::uint64_t without_subscribers = 0;
    std::uint64_t again = 0;
    std::uint64_t dropped = 0;
    std::uint64_t pages = 0;
    std::uint64_t disconnected = 0; // subscribers that were lost or cut off
    std::uint64_t unconfirmed = 0;  // subscribers that at its end did not say to have everything
    std::vector<TriggerReport> triggers;
    std::optional<FaultCounts> faults; // on purpose, where there are any
    std::vector<PublishedFid> fids;
};

struct FidReport {
    netio::pubsub::Fid fid{};
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t surplus = 0;
    std::optional<std::uint64_t>
        first; // of a verified one: how many were published before its first
};

// Of messages with a time: from the publisher's clock to this machine's. To within a quarter, but
// for the longest.
struct LatencyReport {
    std::uint64_t messages = 0;
    std::uint64_t ahead = 0; // of these, how many came before they were sent: the clocks differ
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
    std::string outcome; // what the exit status says (apps/common/exit_status.hpp)
    std::string detail;
    struct Reached {
        bool any = false;            // a publisher has accepted a subscription
        std::uint64_t unreached = 0; // of those whose addresses were given: have accepted none
    };
    Reached reached;
    std::uint64_t connections = 0;
    std::uint64_t restarts = 0; // another publisher answered where one had
    // Publishers that ended and had not told how much they had published.
    std::uint64_t unknown_tails = 0;
    Throughput throughput;
    std::optional<std::uint64_t> lost; // absent: nobody knows
    std::uint64_t surplus = 0;         // arrived beyond what the publisher says it sent
    bool verified = false;
    PatternCounts pattern; // of a verified one
    std::optional<LatencyReport> latency;
    std::vector<FidReport> fids;
};

// One line without a line end.
std::string to_json(const PublishReport& report);
// Of all publishers of a process; one has a report of its own.
std::string to_json(const std::vector<PublishReport>& reports);
std::string to_json(const SubscribeReport& report);
// Several lines, each with a line end.
std::string to_text(const PublishReport& report);
std::string to_text(const std::vector<PublishReport>& reports);
std::string to_text(const SubscribeReport& report);
// The line that a terminal shows while it runs: what the last interval brought, and the sums.
std::string live_line(const Throughput& interval, std::uint64_t messages,
                      std::optional<std::uint64_t> lost);

} // namespace apps
