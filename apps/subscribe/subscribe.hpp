// SPDX-License-Identifier: Apache-2.0
#pragma once

// What netio subscribe decides and counts: its exit status, log lines about publishers and losses,
// slowness, latency, and faults of messages. No I/O.

#include "apps/common/fid_text.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/families.hpp"
#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_layout.hpp"
#include "pubsub/core/fid_map.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace apps::subscribe {

// Which publishers have answered. A --duration that passes before the first answer is extended: on
// a loaded machine connecting may take longer, and no answer yet does not mean that there is none.
class Answers {
  public:
    // `given`: the publishers with a given address.
    explicit Answers(const std::set<std::string>& given) : awaited_{given} {}

    // Call it when the publisher has accepted a subscription. Returns true if the duration begins
    // now.
    bool accepted(const std::string& publisher) {
        any_ = true;
        awaited_.erase(publisher);
        return std::exchange(extended_, false);
    }
    // Call it when a connection, or an attempt at one, has ended.
    void ended(const std::string& publisher) { tried_.insert(publisher); }
    bool is_tried(const std::string& publisher) const { return tried_.contains(publisher); }

    // Call it when the duration has passed. Returns true, at most once, if the run continues until
    // is_hopeless(), or until an attempt at a connection would have timed out. `possible`: a
    // publisher is connected or not tried yet.
    bool extend(bool possible) {
        if (extended_ || any_ || !possible) return false;
        extended_ = true;
        return true;
    }
    bool is_hopeless(bool possible) const noexcept { return extended_ && !possible; }

    bool any() const noexcept { return any_; } // has accepted a subscription
    // Publishers with a given address that have accepted none.
    std::size_t unreached() const noexcept { return awaited_.size(); }

  private:
    std::set<std::string> awaited_;
    std::set<std::string> tried_;
    bool any_ = false;
    bool extended_ = false;
};

struct Asked {
    bool messages = false; // a number of messages
    bool duration = false; // a duration
    bool sound = false;    // all messages and no others: verified
};

ExitStatus outcome(const SubscribeReport& report, const Asked& asked);

// Log lines about publishers that announce the same fids: one line per pair of publishers and
// change. The rate is limited, because anyone who may write to a bus can announce anything. Belongs
// to the loop's thread.

inline std::string line_of(const netio::pubsub::Subscriptions::Contest& contest) {
    const std::string more =
        contest.fids == 1 ? "" : fmt::format(" and {} more fids", contest.fids - 1);
    return fmt::format("{} and {} both announce {}{}; using {}", contest.owner, contest.other,
                       to_string(contest.first.first), more, contest.owner);
}

class ContestLog {
  public:
    ContestLog(netio::EventLoop& loop, LimitedLog::Write write) : lines_{loop, std::move(write)} {}
    void note(const netio::pubsub::Subscriptions::Contest& contest) {
        lines_.note(line_of(contest));
    }

  private:
    LimitedLog lines_;
};

// Log lines about messages lost while not connected: one line for each of the first fids of an
// outage, and one for all fids if there are more. The report has every fid. No I/O.

class OutageLog {
  public:
    static constexpr std::uint64_t shown_fids = 20;

    // Shows fids by the layout's fields; null: as numbers.
    explicit OutageLog(const netio::pubsub::FidLayout* layout) : layout_{layout} {}

    std::optional<std::string> note(netio::pubsub::Fid fid, std::uint64_t count) {
        outage_.messages += count;
        if (++outage_.fids > shown_fids) return {};
        return fmt::format("lost {} messages of {} while not connected", count,
                           shown(netio::pubsub::FidRange{fid, fid}, layout_));
    }
    // Ends an outage: later reports belong to another one.
    std::optional<std::string> end() {
        const Outage all = std::exchange(outage_, {});
        if (all.fids <= shown_fids) return {};
        return fmt::format("lost {} messages of {} fids in total while not connected", all.messages,
                           all.fids);
    }

  private:
    struct Outage {
        std::uint64_t fids = 0;
        std::uint64_t messages = 0;
    };

    const netio::pubsub::FidLayout* layout_;
    Outage outage_;
};

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
// a difference of the clocks. Reads no clock: the caller passes all times.
class OneWayLatency {
  public:
    // Adds a measured time from a request to its answer.
    void round_trip(netio::Duration time) noexcept;
    // Both in nanoseconds since 1970; `arrived` by the clock of this machine.
    void add(std::int64_t published, std::int64_t arrived) noexcept;
    // Returns nullopt before the first message and the first round trip.
    std::optional<OneWayMetrics> metrics(std::string publisher) const;

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
    // Call it when another publisher has this name from now on.
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
