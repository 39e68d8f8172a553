// SPDX-License-Identifier: Apache-2.0
#pragma once

// Distance: how far away the peer is, measured by what the two sides exchange while they connect,
// before anything else is under way; and the gauge of rings that follows from it (P11).
//
//     the side that accepts:   accepts, session open; first ring sent, the peer's first control
//     the side that connects:  first ring sent, the peer's ring; and its first control
//
// A blocking user may see an answer late, so each is an upper bound, and the shortest counts.

#include "stream/core/ring_gauge.hpp"
#include "stream/core/round_trip.hpp"

#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <optional>

namespace netio::stream::inline v0_2 {

class Distance {
  public:
    // `given`: by the user; 0: measure it. Begins with the handshake.
    Distance(EventLoop& loop, bool accepts, std::chrono::nanoseconds given)
        : loop_{loop}, accepts_{accepts}, given_{given} {
        round_trip_.begin(now());
    }

    void on_session_open() {
        if (accepts_) round_trip_.end(now());
    }
    void on_ring_sent() { round_trip_.begin(now()); }
    void on_ring_arrived() {
        if (!accepts_) round_trip_.end(now());
    }
    // The first is the answer to the ring.
    void on_control() {
        if (gauge_) return;
        round_trip_.end(now());
        const std::chrono::nanoseconds measured = round_trip_.shortest();
        gauge_.emplace(given_.count() > 0 ? given_ : measured);
        const bool is_long = measured > long_trip && measured < std::chrono::nanoseconds::max();
        pause_ = is_long ? measured / words_in_a_trip : std::chrono::nanoseconds{0};
    }

    // What is told uses up receives of the peer's, and it has few. Over a long way telling all at
    // once would leave nothing to tell with for the rest of the round trip: so it is spread, and
    // the next control message is not to leave before this.
    TimePoint next_word() const noexcept { return next_word_; }
    void on_told() { next_word_ = loop_.now() + pause_; }

    // Nothing until the peer's first control message.
    std::optional<RingGauge>& gauge() noexcept { return gauge_; }

  private:
    // Below it the peer's receives are free again soon enough.
    static constexpr std::chrono::nanoseconds long_trip = std::chrono::milliseconds{1};
    static constexpr int words_in_a_trip = 16; // the fewest receives that the peer may have are 4

    std::chrono::nanoseconds now() const { return loop_.now().time_since_epoch(); }

    EventLoop& loop_;
    const bool accepts_;
    const std::chrono::nanoseconds given_;
    RoundTrip round_trip_;
    std::optional<RingGauge> gauge_;
    std::chrono::nanoseconds pause_{0};
    TimePoint next_word_{};
};

} // namespace netio::stream::inline v0_2
