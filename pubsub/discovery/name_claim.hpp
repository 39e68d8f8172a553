// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a publisher may write under its name. It takes it when it starts, from whatever its
// predecessor left. Who finds another instance there later stands back, since that one started
// later, and comes back when that one's lease is over: the two never take turns. Where the board
// itself ends leases that is when nothing stands there any more. No I/O, no clock.

#include "pubsub/discovery/lease_tracker.hpp"

#include <cstdint>
#include <optional>

namespace netio::pubsub::inline v0_2 {

class NameClaim {
  public:
    NameClaim(std::uint64_t instance, Duration lease) : instance_{instance}, other_{lease, 1} {}

    // `there`: what stands under the name now. `lives`: who has put it is there, as the board
    // knows.
    bool may_write(const std::optional<Announcement>& there, bool lives, TimePoint now) {
        if (!there || there->instance == instance_ || !taken_) {
            if (there && there->instance != instance_) other_.saw(*there, now);
            taken_ = true;
            return true;
        }
        other_.saw(*there, now);
        other_.expire(now);
        return !lives && other_.alive() == 0;
    }

  private:
    std::uint64_t instance_;
    bool taken_ = false;
    LeaseTracker other_;
};

} // namespace netio::pubsub::inline v0_2
