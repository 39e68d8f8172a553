// SPDX-License-Identifier: Apache-2.0
#pragma once

// When a loop has looked at its descriptors, and how long it did not: because a handler took its
// time, or because the process was stopped. Takes times, gives times.

#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace netio::inline v0_2 {

class Attention {
  public:
    // Shorter gaps between two looks are the loop's everyday life.
    static constexpr Duration tolerance = std::chrono::milliseconds{100};
    static constexpr unsigned turns_between_looks = 16;

    explicit Attention(TimePoint now) noexcept : last_look_{now}, caught_up_{now} {}

    // However busy the loop is, it looks once in so many turns, since each look is a system call,
    // and once in `interval`. Asked once a turn.
    bool look_is_due(TimePoint now, Duration interval) noexcept {
        return ++turns_since_look_ >= turns_between_looks || now - last_look_ >= interval;
    }

    // A look, from `begin` to `end`, that was to take until `deadline` at most.
    void looked(TimePoint begin, TimePoint end, TimePoint deadline) noexcept {
        miss(begin - std::clamp(rested_until_, last_look_, begin));
        rested_until_ = TimePoint::min();
        // A process that is stopped while it waits comes back late.
        if (deadline < end) miss(end - std::max(begin, deadline));
        last_look_ = end;
        turns_since_look_ = 0;
        if (deadline > begin) ++sleep_count_;
    }
    // Nothing is left to do, and somebody else waits for the loop's descriptor now.
    void rest() noexcept { resting_ = true; }
    // The loop goes on. It did not look meanwhile, but until `due` it had no reason to.
    void go_on(TimePoint due) noexcept {
        if (std::exchange(resting_, false)) rested_until_ = due;
    }
    // All that the last look has found was handed over.
    void caught_up() noexcept { caught_up_ = last_look_; }

    TimePoint last_look() const noexcept { return last_look_; }
    // The last look behind which everything was handed over.
    TimePoint last_caught_up() const noexcept { return caught_up_; }
    // How long in all the loop has not looked, beyond the tolerance of each gap.
    Duration stalled() const noexcept { return stalled_; }
    // Looks that were allowed to take time.
    std::uint64_t sleep_count() const noexcept { return sleep_count_; }

  private:
    void miss(Duration gap) noexcept { stalled_ += std::max(gap - tolerance, Duration{0}); }

    TimePoint last_look_;
    TimePoint caught_up_;
    TimePoint rested_until_ = TimePoint::min();
    Duration stalled_{0};
    unsigned turns_since_look_ = 0;
    bool resting_ = false;
    std::uint64_t sleep_count_ = 0;
};

} // namespace netio::inline v0_2
