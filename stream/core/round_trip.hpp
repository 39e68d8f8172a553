// SPDX-License-Identifier: Apache-2.0
#pragma once

// RoundTrip: the shortest of several measured times to the peer and back. Pure; its owner has the
// clock.

#include <algorithm>
#include <chrono>

namespace netio::stream::inline v0_2 {

class RoundTrip {
  public:
    using Duration = std::chrono::nanoseconds;

    // Something that the peer answers leaves at `now`, any rising time.
    void begin(Duration now) { begin_ = now; }
    // An answer to it has come.
    void end(Duration now) { shortest_ = std::min(shortest_, now - begin_); }

    // max(): nothing was measured.
    Duration shortest() const noexcept { return shortest_; }

  private:
    Duration begin_{};
    Duration shortest_ = Duration::max();
};

} // namespace netio::stream::inline v0_2
