// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long nothing has moved while this side looked. A look that came back later than it was to is
// a process that was stopped: what is beyond is nobody's silence. Takes times, gives verdicts.
//
//     while (!silence.is_too_long()) {
//         look, until silence.look_end(now) at most
//         silence.on_looked(how long that took, whether something has moved);
//     }

#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>

namespace netio::stream::inline v0_2 {

class Silence {
  public:
    // 0: none is too long.
    explicit Silence(std::chrono::milliseconds limit) noexcept : limit_{limit} {}

    // So that a stop costs no more than a part of the limit.
    TimePoint look_end(TimePoint begin) const noexcept {
        return limit_ > Duration{0} ? begin + longest_look() : TimePoint::max();
    }
    void on_looked(Duration took, bool moved) noexcept {
        silent_ = moved ? Duration{0} : silent_ + std::min(took, longest_look());
    }
    bool is_too_long() const noexcept { return limit_ > Duration{0} && silent_ >= limit_; }

  private:
    Duration longest_look() const noexcept { return limit_ / 4; }

    Duration limit_;
    Duration silent_{0};
};

} // namespace netio::stream::inline v0_2
