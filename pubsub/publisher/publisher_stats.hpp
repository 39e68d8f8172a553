// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counters that only snapshots show: no decision depends on them. No I/O, no clock.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid_map.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace netio::pubsub::inline v0_3 {

// A count per fid of rare events, such as a dropped message. Fids without an event cost nothing.
class FidCounters {
  public:
    void add(Fid fid) { ++counts_[fid]; }
    std::uint64_t of(Fid fid) const noexcept {
        const std::uint64_t* const count = counts_.find(fid);
        return count != nullptr ? *count : 0;
    }

  private:
    FidMap<std::uint64_t> counts_;
};

// The time in which publishing was blocked: from the first call that the user must repeat until
// on_writable. And the number of refused calls per fid.
class BackpressureTimer {
  public:
    // publish() returned `again` for the fid.
    void refuse(Fid fid, TimePoint now) {
        refused_.add(fid);
        begin(now);
    }
    // A call returned `partial`.
    void begin(TimePoint now) noexcept {
        if (!since_) since_ = now;
    }
    // Returns whether publishing was blocked: then the user gets on_writable now.
    bool end(TimePoint now) noexcept {
        if (!since_) return false;
        past_ += now - *since_;
        since_.reset();
        return true;
    }
    // All such times, with the current one.
    Duration time(TimePoint now) const noexcept { return since_ ? past_ + (now - *since_) : past_; }
    const FidCounters& refused() const noexcept { return refused_; }

  private:
    std::optional<TimePoint> since_;
    Duration past_{};
    FidCounters refused_;
};

// Counters of one subscriber.
class SubscriberStats {
  public:
    explicit SubscriberStats(TimePoint now) noexcept : since_{now} {}

    void note_waiting(std::size_t amount) noexcept {
        most_waiting_ = std::max(most_waiting_, amount);
    }
    // The number of free receives of the peer for this side.
    void note_credits(std::size_t count) noexcept {
        least_credits_ = std::min(least_credits_, count);
    }
    // A frame was sent, `latency` after it was queued.
    void note_sent(Duration latency) noexcept { latency_.add(latency); }
    void note_dropped(std::uint64_t messages) noexcept { dropped_ += messages; }

    TimePoint since() const noexcept { return since_; }
    std::uint64_t dropped() const noexcept { return dropped_; }
    const LatencyHistogram& latency() const noexcept { return latency_; }
    // The largest queue since the previous call; `now`: its current size.
    std::size_t take_most_waiting(std::size_t now) noexcept {
        return std::max(std::exchange(most_waiting_, now), now);
    }
    // The fewest credits since the previous call.
    std::size_t take_least_credits(std::size_t now) noexcept {
        return std::min(std::exchange(least_credits_, now), now);
    }

  private:
    TimePoint since_;
    std::size_t most_waiting_ = 0;
    std::size_t least_credits_ = std::numeric_limits<std::size_t>::max();
    std::uint64_t dropped_ = 0;
    LatencyHistogram latency_;
};

} // namespace netio::pubsub::inline v0_3
