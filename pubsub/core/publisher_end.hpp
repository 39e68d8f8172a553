// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far the end of a publisher is, and what is said of it when everybody is gone. No I/O, no
// clock.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <string>

namespace netio::pubsub::inline v0_2 {

class PublisherEnd {
  public:
    // In order; whoever has not taken everything by `limit`, on the clock of
    // attended(), is cut off. False: it had begun already.
    bool begin(TimePoint limit) noexcept {
        if (begun_) return false;
        begun_ = true;
        limit_ = limit;
        return true;
    }
    void begin_at_once() noexcept { begun_ = at_once_ = true; }

    bool has_begun() const noexcept { return begun_; }
    bool is_overdue(TimePoint now) const noexcept { return now >= limit_; }
    // A subscriber is gone, and has not answered the totals.
    void note_unconfirmed() noexcept { unconfirmed_ += begun_ ? 1 : 0; }

    Closed told() const {
        Closed closed{.reason = CloseReason::orderly, .detail = {}};
        if (unconfirmed_ > 0) {
            closed.reason = CloseReason::unconfirmed;
            closed.detail = std::to_string(unconfirmed_) +
                            " subscriber(s) did not confirm that they have everything";
        }
        if (at_once_) closed.reason = CloseReason::local;
        return closed;
    }

  private:
    bool begun_ = false;
    bool at_once_ = false;
    std::size_t unconfirmed_ = 0;
    TimePoint limit_ = TimePoint::max();
};

} // namespace netio::pubsub::inline v0_2
