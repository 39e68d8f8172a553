// SPDX-License-Identifier: Apache-2.0
#pragma once

// RttEstimator: the round-trip time to the peer, measured while the two sides connect, before other
// traffic can delay the messages. It serves two decisions: whether the ring is too small for the
// distance (RingGauge, docs/stream-protocol.md, P11), and the pause between control messages.
//
// Pure: all functions take times as values, from any monotonic clock.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace netio::stream::inline v0_3 {

// RingGauge: distinguishes a ring that is too small for the distance from a ring that a slow link
// keeps full.
//
// The order of events cannot distinguish them: a ring's worth of bytes on a long path, and a ring's
// worth of bytes queued before a short path, look the same from both ends. So the gauge compares
// the time in which a ring's worth of bytes arrives with the round-trip time.
class RingGauge {
  public:
    using Duration = std::chrono::nanoseconds;

    // `round_trip`: of a short message without other traffic. A value that is too large makes the
    // ring larger than necessary, in proportion.
    explicit RingGauge(Duration round_trip) : round_trip_{round_trip} {}

    // To be called whenever Receiver::wanted_ring() suggests a larger ring. `total_bytes`: all
    // bytes that have arrived until `now`, through the ring or directly. Returns whether the bytes
    // since the previous call came at the rate of at least one ring in two round trips.
    bool confirms(Duration now, std::uint64_t total_bytes, std::uint64_t ring_bytes);

  private:
    Duration round_trip_;
    bool is_running_ = false;
    Duration begin_{};
    std::uint64_t begin_bytes_ = 0;
};

// The intervals that are measured, each from the first event to the second:
//
//     the accepting side:   accept -> session open; first ring sent -> first control message
//     the connecting side:  first ring sent -> the peer's ring; and -> first control message
//
// A peer whose user blocks may answer late, so each interval is an upper bound, and the shortest
// counts.
class RttEstimator {
  public:
    using Duration = std::chrono::nanoseconds;

    // `configured`: used for the ring instead of the measured time; 0: the measured time is used.
    // `now`: when the session's handshake begins.
    RttEstimator(Duration now, bool accepts, Duration configured)
        : accepts_{accepts}, configured_{configured}, begin_{now} {}

    void on_session_open(Duration now) {
        if (accepts_) end_interval(now);
    }
    void on_ring_sent(Duration now) { begin_ = now; }
    void on_ring_arrived(Duration now) {
        if (!accepts_) end_interval(now);
    }
    // Only the first control message counts: it is the answer to the ring.
    void on_control(Duration now);

    // The shortest measured interval; max(): nothing was measured.
    Duration shortest() const noexcept { return shortest_; }
    // Empty until the peer's first control message.
    std::optional<RingGauge>& gauge() noexcept { return gauge_; }

    // How long to wait between two control messages. Each one uses a receive of the peer, which has
    // few. Over a long distance, all control messages at once would leave none for the rest of the
    // round trip, so they are spread. 0 over a short distance.
    Duration control_pause() const noexcept { return control_pause_; }

  private:
    void end_interval(Duration now) { shortest_ = std::min(shortest_, now - begin_); }

    bool accepts_;
    Duration configured_;
    Duration begin_;
    Duration shortest_ = Duration::max();
    std::optional<RingGauge> gauge_;
    Duration control_pause_{0};
};

inline bool RingGauge::confirms(Duration now, std::uint64_t total_bytes, std::uint64_t ring_bytes) {
    const std::uint64_t bytes = total_bytes - begin_bytes_;
    if (is_running_ && bytes < ring_bytes) return false; // too few bytes for a decision
    begin_bytes_ = total_bytes;
    const Duration elapsed = now - std::exchange(begin_, now);
    if (!std::exchange(is_running_, true)) return false;
    constexpr double round_trips = 2; // more bytes are in flight than the path holds
    return static_cast<double>(elapsed.count()) * static_cast<double>(ring_bytes) <=
           round_trips * static_cast<double>(round_trip_.count()) * static_cast<double>(bytes);
}

inline void RttEstimator::on_control(Duration now) {
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
