// SPDX-License-Identifier: Apache-2.0
#pragma once

// For how long publishing has been held up: from the first call that a user is to repeat until he
// is told that it is worth trying. And of which fid how many calls were refused, which costs
// nothing as long as none is. Times in, sums out: no I/O, no clock.

#include "netio/base/time.hpp"
#include "pubsub/core/fid_tally.hpp"

#include <cstdint>
#include <optional>

namespace netio::pubsub::inline v0_2 {

class HeldUp {
  public:
    // A message of the fid was not taken: `again`.
    void refuse(Fid fid, TimePoint now) {
        refused_.add(fid);
        begin(now);
    }
    // A call that is to be repeated, of which something was taken.
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
    const FidTally& refused() const noexcept { return refused_; }

  private:
    std::optional<TimePoint> since_;
    Duration past_{};
    FidTally refused_;
};

} // namespace netio::pubsub::inline v0_2
