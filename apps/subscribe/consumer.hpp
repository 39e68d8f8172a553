// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/figures.hpp"
#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace apps::subscribe {

// Selects a part of the messages: the first message of each fid, and then every N-th. No I/O.

class Prescale {
  public:
    explicit Prescale(std::uint64_t every) noexcept : every_{every} {}

    bool takes(netio::pubsub::Fid fid) {
        if (every_ == 1) return true;
        const bool taken = seen_[fid]++ % every_ == 0;
        passed_over_ += taken ? 0 : 1;
        return taken;
    }
    std::uint64_t passed_over() const noexcept { return passed_over_; }

  private:
    std::uint64_t every_;
    netio::pubsub::FidMap<std::uint64_t> seen_; // limited by the subscriber's limit of fids
    std::uint64_t passed_over_ = 0;
};

// Simulates a slow subscriber: how long it holds each message. No I/O.

struct Slowness {
    netio::Duration think{0}; // for each message
    // Reads nothing for `pause` once in `every`; zero: never.
    netio::Duration pause{0};
    netio::Duration every{0};
};

// Parses "500ms@10s" into pause and every. Returns false if the text is wrong, or the pause is not
// shorter than `every`.
bool parse_pause(std::string_view text, Slowness& slowness);
inline constexpr std::string_view pause_spelling =
    "TIME@TIME, the length and the interval of pauses: 500ms@10s; the first is the shorter";

class SlowReader {
  public:
    SlowReader(const Slowness& slowness, netio::TimePoint start);

    bool is_slow() const noexcept {
        return slowness_.think.count() > 0 || slowness_.pause.count() > 0;
    }
    // How long a message that arrives at `now` is held.
    netio::Duration hold(netio::TimePoint now);

  private:
    Slowness slowness_;
    netio::TimePoint next_pause_;
};

// The latency of messages with a time stamp. No clock.
class Latency {
  public:
    // Both in nanoseconds since 1970; `arrived` by the clock of this machine.
    void add(std::int64_t published, std::int64_t arrived);
    // Returns nullopt if there was none.
    std::optional<LatencyReport> report() const;

  private:
    netio::LatencyHistogram histogram_;
    std::uint64_t ahead_ = 0; // messages ahead of the local clock
};

// The latency of the messages of one publisher, corrected by the estimated difference of the clocks
// if that is certain. The message that arrived fastest took at most a round trip, so the smallest
// difference of arrival and publication, less half a round trip, is the clocks' difference, with an
// error of half a round trip. If all messages waited longer than a round trip, this wait counts as
// a difference of the clocks. No clock.
class OneWayLatency {
  public:
    // The time from a request to its answer.
    void round_trip(netio::Duration time) noexcept;
    // Both in nanoseconds since 1970; `arrived` by the clock of this machine.
    void add(std::int64_t published, std::int64_t arrived) noexcept;
    // Returns nullopt before the first message and the first round trip.
    std::optional<OneWayFigures> figures(std::string publisher) const;

  private:
    struct Offset {
        netio::Duration value;
        netio::Duration error;
    };
    Offset offset() const noexcept;

    netio::LatencyHistogram histogram_;
    netio::Duration round_trip_ = netio::Duration::max(); // the shortest
    netio::Duration smallest_ = netio::Duration::max();   // arrival minus publication
};

// What `--verify` finds: faults in the messages. No I/O.

class Verifier {
  public:
    // The first `header_bytes` bytes of each message are not verified.
    explicit Verifier(std::size_t header_bytes) noexcept : header_bytes_{header_bytes} {}

    // `publisher` is the publisher's name.
    void check(std::string_view publisher, netio::pubsub::Fid fid,
               std::span<const std::byte> message);
    // From now on messages of this name come from another publisher.
    void begin_anew(std::string_view publisher);

    const PatternChecker& pattern() const noexcept { return pattern_; }

  private:
    // Returns a number for the publisher's name. The pattern distinguishes publishers by it,
    // because each publisher has its own sequence. The last name is cached, because consecutive
    // messages mostly have the same publisher.
    std::uint32_t number_of(std::string_view publisher);

    std::size_t header_bytes_;
    std::map<std::string, std::uint32_t, std::less<>> publishers_;
    std::string last_publisher_;
    std::uint32_t last_number_ = 0;
    std::uint32_t numbers_given_ = 0;
    PatternChecker pattern_;
};

} // namespace apps::subscribe
