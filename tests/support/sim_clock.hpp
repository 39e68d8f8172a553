// SPDX-License-Identifier: Apache-2.0
#pragma once

// Virtual time and its scheduled events. Events at the same time run in the order in which they
// were scheduled, so every run is the same.

#include "netio/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace netio::test {

class SimClock {
  public:
    TimePoint now() const noexcept { return now_; }
    void at(TimePoint when, std::function<void()> event) {
        events_.emplace(std::pair{std::max(when, now_), order_++}, std::move(event));
    }
    // When the next event is due, or max() if no event is scheduled.
    TimePoint next() const noexcept {
        return events_.empty() ? TimePoint::max() : events_.begin()->first.first;
    }
    // Advances time to the next event and runs it, or to `until` if that is earlier. Returns
    // whether an event ran.
    bool step(TimePoint until);

  private:
    TimePoint now_{std::chrono::hours{1}};
    std::uint64_t order_ = 0;
    std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> events_;
};

} // namespace netio::test
