// SPDX-License-Identifier: Apache-2.0
#pragma once

// RingGauge: tells a ring that is too small for the distance from one that a slow link keeps full
// (docs/stream-protocol.md, P11).
//
// The order of events cannot: a ring's worth of bytes on a long way, and one in the queue before a
// short way, look alike from both ends. So this takes times, as values, and compares how long a
// ring's worth of bytes takes to arrive with the round trip. Pure; its owner has the clock.

#include <chrono>
#include <cstdint>

namespace netio::stream::inline v0_2 {

class RingGauge {
  public:
    using Duration = std::chrono::nanoseconds;

    // `round_trip`: of a short message, with nothing else under way. Too long a time makes the ring
    // larger than it need be, in proportion.
    explicit RingGauge(Duration round_trip) : round_trip_{round_trip} {}

    // To be asked whenever Receiver::wanted_ring() suspects the ring, with the bytes that have
    // arrived until `now`, any rising time, through the ring or directly. True if, since it was
    // asked before, they came at the rate of at least a ring in two round trips.
    bool confirms(Duration now, std::uint64_t total_bytes, std::uint64_t ring_bytes);

  private:
    Duration round_trip_;
    bool is_running_ = false;
    Duration begin_{};
    std::uint64_t begin_bytes_ = 0;
};

} // namespace netio::stream::inline v0_2
