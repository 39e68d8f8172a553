// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many turns of a loop did some work, and how long they took: nothing else went on then. And
// how long the loop had nothing to do: what others took meanwhile was not for want of its
// attention.

#include "netio/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace netio::inline v0_2 {

class TurnMeter {
  public:
    // Behind a turn that was not added nothing was to be done until now, unless the loop was left.
    void begin(TimePoint now) noexcept {
        if (idle_) rested_ += now - begin_;
        begin_ = now;
        idle_ = true;
    }
    // Whoever drives the loop does something else until the next turn.
    void leave() noexcept { idle_ = false; }
    // Whoever drives the loop waits until the next turn.
    void rest(TimePoint now) noexcept {
        begin_ = now;
        idle_ = true;
    }
    void add(Duration taken) noexcept {
        idle_ = false;
        ++count_;
        longest_ = std::max(longest_, taken);
        longest_lately_ = std::max(longest_lately_, taken);
    }

    std::uint64_t count() const noexcept { return count_; }
    // With what handlers did in it.
    Duration longest() const noexcept { return longest_; }
    // Since this was asked last.
    Duration take_longest_lately() noexcept {
        return std::exchange(longest_lately_, Duration::zero());
    }

    // In all, waiting or spinning.
    Duration rested() const noexcept { return rested_; }

  private:
    TimePoint begin_{};
    bool idle_ = false;
    Duration rested_{0};
    std::uint64_t count_ = 0;
    Duration longest_{0};
    Duration longest_lately_{0};
};

} // namespace netio::inline v0_2
