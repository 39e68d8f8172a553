// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is counted of one subscriber for those who look at the publisher, and nobody decides by.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace netio::pubsub::inline v0_2 {

class SubscriberAccount {
  public:
    explicit SubscriberAccount(TimePoint now) noexcept : since_{now} {}

    void note_waiting(std::size_t amount) noexcept {
        most_waiting_ = std::max(most_waiting_, amount);
    }
    // So many receives that it has for us are left.
    void note_credits(std::size_t count) noexcept {
        least_credits_ = std::min(least_credits_, count);
    }
    // One of its frames was sent, so long after it entered the queue.
    void note_sent(Duration taken) noexcept { latency_.add(taken); }
    // So many messages.
    void note_missed(std::uint64_t count) noexcept { missed_ += count; }

    TimePoint since() const noexcept { return since_; }
    std::uint64_t missed() const noexcept { return missed_; }
    const LatencyHistogram& latency() const noexcept { return latency_; }
    // The most that waited since this was asked last; `now` it is so much.
    std::size_t take_most_waiting(std::size_t now) noexcept {
        return std::max(std::exchange(most_waiting_, now), now);
    }
    // And the least of its receives.
    std::size_t take_least_credits(std::size_t now) noexcept {
        return std::min(std::exchange(least_credits_, now), now);
    }

  private:
    TimePoint since_;
    std::size_t most_waiting_ = 0;
    std::size_t least_credits_ = std::numeric_limits<std::size_t>::max();
    std::uint64_t missed_ = 0;
    LatencyHistogram latency_;
};

} // namespace netio::pubsub::inline v0_2
