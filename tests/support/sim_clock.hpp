// SPDX-License-Identifier: Apache-2.0
#pragma once

// Virtual time, and what is to happen in it. What happens at the same time happens in the order of
// scheduling, so a run is the same every time.

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
    // When the next event is due; max(): there is none.
    TimePoint next() const noexcept {
        return events_.empty() ? TimePoint::max() : events_.begin()->first.first;
    }
    // Time moves to the next event, which happens, or to `until` if that comes first. Whether an
    // event has happened.
    bool step(TimePoint until);

  private:
    TimePoint now_{std::chrono::hours{1}};
    std::uint64_t order_ = 0;
    std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> events_;
};

} // namespace netio::test
