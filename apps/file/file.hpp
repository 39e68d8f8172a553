// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/core/fid.hpp"
#include "pubsub/recording/recording_reader.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace apps::file {

// Sums up the messages and events of a recording: numbers, sizes, losses and rates of each fid, and
// the rate over time. No I/O.

// Messages and bytes in equal intervals from the first time on. The number of intervals is limited:
// if the recording is longer, they become twice as long.
class RateHistogram {
  public:
    static constexpr std::size_t interval_limit = 40;

    struct Interval {
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
    };
    void add(netio::RecordingTime time, std::uint64_t bytes);
    std::chrono::nanoseconds width() const noexcept { return width_; }
    std::vector<Interval> intervals() const {
        return {intervals_.begin(), intervals_.begin() + used_};
    }

  private:
    std::optional<netio::RecordingTime> begin_;
    std::chrono::nanoseconds width_{1'000'000};
    std::array<Interval, interval_limit> intervals_{};
    std::ptrdiff_t used_ = 0;
};

struct FidSummary {
    std::string publisher; // of the first message
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;     // numbers that are absent
    std::uint64_t restarts = 0; // times that the numbers stepped back
    std::uint64_t smallest = 0;
    std::uint64_t largest = 0;
    std::uint64_t last_sequence = 0;
};

class Summary {
  public:
    void add(const netio::RecordedMessage& message);
    void add(const netio::RecordedEvent& event);

    struct EventSum {
        std::uint64_t events = 0;
        std::uint64_t count = 0; // sum of their counts
    };
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t restarts = 0;
    std::uint64_t with_publish_time = 0;
    std::optional<netio::RecordingTime> first;
    netio::RecordingTime last{};
    std::map<netio::Fid, FidSummary> fids;
    std::map<std::string, EventSum> events;
    RateHistogram rate;

    double seconds() const;

  private:
    void see(netio::RecordingTime time);
    std::unordered_map<netio::Fid, FidSummary*> found_; // of fids
};

// The report of `netio file info` and `verify`.
struct Report {
    std::string role; // "file_info" or "file_verify"
    std::vector<netio::RecordingReader::File> files;
    Summary summary;
    std::vector<netio::RecordingReader::Damage> damage;
    std::uint64_t damage_count = 0;
    std::vector<netio::RecordingReader::Damage> torn;
    std::vector<std::string> absent_parts; // of a rotated set, between others
    std::uint64_t foreign_messages = 0;
    std::uint64_t backward_steps = 0;
    std::vector<std::string> wrong_counts; // files whose summary has another number of messages
};

// Several lines, each with a line end. Fids beyond the limit are only counted.
std::string to_text(const Report& report, std::size_t fid_limit);
// One line without a line end.
std::string to_json(const Report& report);

} // namespace apps::file
