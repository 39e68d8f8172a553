// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two measures of a loop. They take times and return times: no clock, no I/O.
//
//   LoopStats    how many turns did work and how long they took, and how long the loop was idle
//   PollTracker  when the loop polled its descriptors, and how long it was not able to: because a
//                handler ran long, or because the process was stopped

#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace netio::inline v0_3 {

class LoopStats {
  public:
    // After a turn that did no work the loop was idle until now, unless leave() was called.
    void begin(TimePoint now) noexcept {
        if (idle_) rested_ += now - begin_;
        begin_ = now;
        idle_ = true;
    }
    // The program does other work until the next turn.
    void leave() noexcept { idle_ = false; }
    // The program waits until the next turn.
    void rest(TimePoint now) noexcept {
        begin_ = now;
        idle_ = true;
    }
    // A turn that did work.
    void add(Duration taken) noexcept {
        idle_ = false;
        ++count_;
        longest_ = std::max(longest_, taken);
        longest_lately_ = std::max(longest_lately_, taken);
    }

    std::uint64_t count() const noexcept { return count_; }
    // Includes the time of the handlers.
    Duration longest() const noexcept { return longest_; }
    // Since the previous call.
    Duration take_longest_lately() noexcept {
        return std::exchange(longest_lately_, Duration::zero());
    }

    // The total idle time, waiting or spinning.
    Duration rested() const noexcept { return rested_; }

  private:
    TimePoint begin_{};
    bool idle_ = false;
    Duration rested_{0};
    std::uint64_t count_ = 0;
    Duration longest_{0};
    Duration longest_lately_{0};
};

class PollTracker {
  public:
    // A shorter gap between two polls is normal.
    static constexpr Duration tolerance = std::chrono::milliseconds{100};
    static constexpr unsigned turns_between_polls = 16;

    explicit PollTracker(TimePoint now) noexcept : last_poll_{now}, caught_up_{now} {}

    // A busy loop polls once in turns_between_polls, because each poll is a system call, and once
    // in `interval`. To be called once a turn.
    bool poll_is_due(TimePoint now, Duration interval) noexcept {
        return ++turns_since_poll_ >= turns_between_polls || now - last_poll_ >= interval;
    }

    // A poll from `begin` to `end` that was to wait until `deadline` at most.
    void polled(TimePoint begin, TimePoint end, TimePoint deadline) noexcept {
        miss(begin - std::clamp(rested_until_, last_poll_, begin));
        rested_until_ = TimePoint::min();
        // A process that is stopped while it waits returns late.
        if (deadline < end) miss(end - std::max(begin, deadline));
        last_poll_ = end;
        turns_since_poll_ = 0;
        if (deadline > begin) ++sleep_count_;
    }
    // Nothing is left to do, and another loop waits for this loop's descriptor now.
    void rest() noexcept { resting_ = true; }
    // The loop continues. It did not poll in the meantime, but had no reason to before `due`.
    void resume(TimePoint due) noexcept {
        if (std::exchange(resting_, false)) rested_until_ = due;
    }
    // Everything that the last poll found has been delivered.
    void caught_up() noexcept { caught_up_ = last_poll_; }

    TimePoint last_poll() const noexcept { return last_poll_; }
    // The last poll after which everything was delivered.
    TimePoint last_caught_up() const noexcept { return caught_up_; }
    // How long in total the loop has not polled, beyond the tolerance of each gap.
    Duration stalled() const noexcept { return stalled_; }
    // Polls that were allowed to wait.
    std::uint64_t sleep_count() const noexcept { return sleep_count_; }

  private:
    void miss(Duration gap) noexcept { stalled_ += std::max(gap - tolerance, Duration{0}); }

    TimePoint last_poll_;
    TimePoint caught_up_;
    TimePoint rested_until_ = TimePoint::min();
    Duration stalled_{0};
    unsigned turns_since_poll_ = 0;
    bool resting_ = false;
    std::uint64_t sleep_count_ = 0;
};

} // namespace netio::inline v0_3
