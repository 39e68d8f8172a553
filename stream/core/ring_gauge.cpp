// SPDX-License-Identifier: Apache-2.0
#include "stream/core/ring_gauge.hpp"

#include <utility>

namespace netio::stream::inline v0_2 {

bool RingGauge::confirms(Duration now, std::uint64_t total_bytes, std::uint64_t ring_bytes) {
    const std::uint64_t bytes = total_bytes - begin_bytes_;
    if (is_running_ && bytes < ring_bytes) return false; // too few to tell
    begin_bytes_ = total_bytes;
    const Duration elapsed = now - std::exchange(begin_, now);
    if (!std::exchange(is_running_, true)) return false;
    constexpr double round_trips = 2; // as there is more on the way of a transfer than the wire
    return static_cast<double>(elapsed.count()) * static_cast<double>(ring_bytes) <=
           round_trips * static_cast<double>(round_trip_.count()) * static_cast<double>(bytes);
}

} // namespace netio::stream::inline v0_2
