// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many messages are due: a rate, kept exactly in the long run, in bursts of a given size. What
// could not be sent in time is not made up for beyond one second. Values in, values out.

#include "netio/loop/event_loop.hpp"

#include <algorithm>
#include <cstdint>

namespace apps {

class Pacer {
  public:
    // per_second > 0; burst >= 1.
    Pacer(double per_second, std::uint64_t burst, netio::TimePoint start) noexcept
        : per_second_{per_second}, burst_{burst}, start_{start} {}

    // How many may be sent at `now`, given those that were.
    std::uint64_t due(netio::TimePoint now) {
        if (now < start_) return 0;
        const double elapsed = std::chrono::duration<double>(now - start_).count();
        // The first burst is due at once.
        const auto bursts =
            static_cast<std::uint64_t>(elapsed * per_second_ / static_cast<double>(burst_)) + 1;
        const std::uint64_t total = bursts * burst_;
        const auto backlog_limit =
            std::max<std::uint64_t>(burst_, static_cast<std::uint64_t>(per_second_));
        if (total > sent_ + backlog_limit) sent_ = total - backlog_limit;
        return total - sent_;
    }
    void sent(std::uint64_t count) noexcept { sent_ += count; }
    // When the next message is due, if none is now; max(): not within a generation.
    netio::TimePoint next() const {
        const std::uint64_t bursts = sent_ / burst_;
        const std::chrono::duration<double> offset{static_cast<double>(bursts) *
                                                   static_cast<double>(burst_) / per_second_};
        // The clock's nanoseconds end after 292 years.
        if (offset > std::chrono::hours{24 * 365 * 30}) return netio::TimePoint::max();
        // Rounded up: a timer must not fire just before the message is due.
        return start_ + std::chrono::ceil<netio::Duration>(offset) + netio::Duration{1};
    }

  private:
    double per_second_;
    std::uint64_t burst_;
    netio::TimePoint start_;
    std::uint64_t sent_ = 0; // or given up
};

} // namespace apps
