// SPDX-License-Identifier: Apache-2.0
#include "stream/core/rtt_estimator.hpp"

#include <utility>

namespace netio::stream::inline v0_3 {

bool RingGauge::confirms(Duration now, std::uint64_t total_bytes, std::uint64_t ring_bytes) {
    const std::uint64_t bytes = total_bytes - begin_bytes_;
    if (is_running_ && bytes < ring_bytes) return false; // too few bytes for a decision
    begin_bytes_ = total_bytes;
    const Duration elapsed = now - std::exchange(begin_, now);
    if (!std::exchange(is_running_, true)) return false;
    constexpr double round_trips = 2; // more bytes are in flight than the path holds
    return static_cast<double>(elapsed.count()) * static_cast<double>(ring_bytes) <=
           round_trips * static_cast<double>(round_trip_.count()) * static_cast<double>(bytes);
}

void RttEstimator::on_control(Duration now) {
    // Over a shorter distance, the peer's receives are free again soon enough.
    constexpr Duration long_round_trip = std::chrono::milliseconds{1};
    constexpr int controls_per_round_trip = 16; // a peer may have as few as 4 receives
    if (gauge_) return;
    end_interval(now);
    gauge_.emplace(configured_.count() > 0 ? configured_ : shortest_);
    const bool is_long = shortest_ > long_round_trip && shortest_ < Duration::max();
    control_pause_ = is_long ? shortest_ / controls_per_round_trip : Duration{0};
}

} // namespace netio::stream::inline v0_3
