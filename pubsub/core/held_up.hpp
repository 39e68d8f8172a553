// SPDX-License-Identifier: Apache-2.0
#pragma once

// For how long publishing has been held up: from the first call that a user is to repeat until he
// is told that it is worth trying. Times in, a sum out: no I/O, no clock.

#include "netio/base/time.hpp"

#include <optional>

namespace netio::pubsub::inline v0_2 {

class HeldUp {
  public:
    // A call that is to be repeated.
    void begin(TimePoint now) noexcept {
        if (!since_) since_ = now;
    }
    // Whether anybody is to be told; he is, now.
    bool end(TimePoint now) noexcept {
        if (!since_) return false;
        past_ += now - *since_;
        since_.reset();
        return true;
    }
    // With what is going on.
    Duration time(TimePoint now) const noexcept { return since_ ? past_ + (now - *since_) : past_; }

  private:
    std::optional<TimePoint> since_;
    Duration past_{};
};

} // namespace netio::pubsub::inline v0_2
