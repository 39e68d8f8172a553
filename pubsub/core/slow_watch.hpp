// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long subscribers have taken nothing of what is there for them. Times in, verdicts out: no
// I/O, no clock.
//
// Only time in which somebody looked counts. A publisher that was stopped, or whose user's handler
// took long, has not seen what its subscribers did meanwhile, so one look counts for two periods at
// most. The caller looks after it has taken in what had arrived.

#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace netio::pubsub::inline v0_2 {

// Of one subscriber.
struct Idleness {
    std::uint64_t progress = 0; // at the last look
    Duration time{};            // without any
    bool gave_way = false;      // nothing is kept for it until it makes progress
    bool waited_for = false;    // publishing has to wait for it
    bool limited = false;       // and its policy limits that
};

class SlowWatch {
  public:
    // Who has taken nothing for so long is sent one thing at a time.
    static constexpr std::chrono::milliseconds stalled_after{100};
    // A subscriber without progress for this long is reported as slow. Shorter stalls are common
    // and cost nothing: a subscriber that computes, a process that waits for a core.
    static constexpr std::chrono::seconds reported_after{1};

    // `shortest`: of all the times that are watched for.
    explicit SlowWatch(Duration shortest) noexcept
        : period_{
              std::clamp<Duration>(shortest / 8, std::chrono::microseconds{100}, stalled_after)} {}

    // How often to look while somebody has something to take.
    Duration period() const noexcept { return period_; }

    // Begins a look at everybody.
    void look(TimePoint now) noexcept {
        looked_ = last_ == TimePoint::min() ? Duration::zero() : std::min(now - last_, 2 * period_);
        last_ = now;
    }
    // Nobody has anything to take: the time until the next look does not count.
    void rest() noexcept { last_ = TimePoint::min(); }

    struct Queue {
        bool has_more = false;      // for the subscriber to take, waited for or not
        std::uint64_t progress = 0; // any number that changes when it takes something
    };
    // Who has more to take goes on to be waited for: what it took may have been before the wait
    // began, or not enough to end it.
    void see(Idleness& idle, const Queue& queue) const noexcept {
        const bool taken = queue.progress != idle.progress;
        idle.progress = queue.progress;
        idle.waited_for = idle.waited_for && (queue.has_more || !taken);
        idle.limited = idle.limited && idle.waited_for;
        const bool counts = !taken && (queue.has_more || idle.waited_for);
        idle.gave_way = idle.gave_way && counts;
        idle.time = counts ? idle.time + looked_ : Duration{};
    }
    static bool stalled(const Idleness& idle) noexcept { return idle.time >= stalled_after; }
    static bool is_reported(Duration idle) noexcept { return idle >= reported_after; }

  private:
    Duration period_;
    TimePoint last_ = TimePoint::min();
    Duration looked_{};
};

} // namespace netio::pubsub::inline v0_2
