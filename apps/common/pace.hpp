// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace apps::replay {

// When the messages of a recording are due. If the publisher is late, for instance because a
// subscriber blocked it, at most one second is caught up; a longer delay postpones everything that
// follows. No I/O, no clock.
class Pace {
  public:
    // Factor of the recorded speed, above zero; nullopt: as fast as possible.
    explicit Pace(std::optional<double> factor) noexcept : factor_{factor} {}

    static constexpr netio::Duration catch_up_limit = std::chrono::seconds{1};

    // Returns when the message is due that was recorded this long after the first one; TimePoint{}:
    // at once. The first call decides the begin.
    netio::TimePoint due(netio::Duration recorded, netio::TimePoint now) noexcept {
        if (!factor_) return {};
        if (!begin_) begin_ = now;
        constexpr double longest = 1e18; // ns
        const double after = static_cast<double>(recorded.count()) / *factor_;
        const netio::Duration scaled{
            static_cast<netio::Duration::rep>(std::clamp(after, 0.0, longest))};
        netio::TimePoint time = *begin_ + scaled;
        if (now - time > catch_up_limit) {
            const netio::Duration shift = now - time - catch_up_limit;
            put_off_ += shift;
            *begin_ += shift;
            time += shift;
        }
        return time;
    }
    // A message that was due at `due` has been published.
    void published(netio::TimePoint due, netio::TimePoint now) noexcept {
        if (factor_) deviation_.add(now - due);
    }

    bool is_paced() const noexcept { return factor_.has_value(); }
    // How late the messages were, relative to the schedule as far as it was not put off.
    const netio::LatencyHistogram& deviation() const noexcept { return deviation_; }
    netio::Duration put_off() const noexcept { return put_off_; }

  private:
    std::optional<double> factor_;
    std::optional<netio::TimePoint> begin_;
    netio::Duration put_off_{0};
    netio::LatencyHistogram deviation_;
};

} // namespace apps::replay
