// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether the peer still lives, and when this side has to show that it does. Silence alone proves
// nothing: it counts only while our loop looked, and a sign that the provider saw below our
// messages ends it. Takes times, gives verdicts; a plain value, not thread-safe.
//
//     if (liveness.is_doubtful(look)) dead = liveness.is_dead(look, provider's sign, ...);
//     if (liveness.must_beat()) send a heartbeat
//     look again after liveness.interval()

#include "netio/base/time.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace netio::inline v0_2 {

class Liveness {
  public:
    // What our loop knows of itself when it looks.
    struct Look {
        TimePoint now;
        TimePoint caught_up; // all that had arrived by then has been handed over
        Duration stalled{0}; // how long in all it has not looked
    };

    // 0: never sends a heartbeat; 0: no silence is too long.
    Liveness(Duration heartbeat, Duration dead_after) noexcept
        : heartbeat_{heartbeat}, dead_after_{dead_after} {}

    // How often the peer promises to send something; 0: it does not.
    void expect(Duration peer_heartbeat) noexcept { peer_heartbeat_ = peer_heartbeat; }
    void on_received(TimePoint now, Duration stalled) noexcept {
        heard_ = now;
        stalled_then_ = stalled;
    }
    void on_sent() noexcept { sent_ = true; }

    // How long to wait for the next look; nothing: never look.
    std::optional<Duration> interval() const noexcept {
        if (heartbeat_ > Duration{0}) return heartbeat_;
        if (dead_after_ > Duration{0}) return dead_after_ / 4;
        return std::nullopt;
    }
    // Nothing was sent since it was asked last.
    bool must_beat() noexcept { return !std::exchange(sent_, false) && heartbeat_ > Duration{0}; }

    // Half the time has passed: ask the provider, whose look for signs takes a while.
    bool is_doubtful(const Look& look) const noexcept {
        return dead_after_ > Duration{0} && silence(look, heard_) > dead_after_ / 2;
    }
    // `sign`: when the peer's host showed that it lives; min(): unknown. `may_speak`: the peer has
    // credits left.
    bool is_dead(const Look& look, TimePoint sign, bool may_speak) const noexcept {
        if (dead_after_ <= Duration{0}) return false;
        if (sign != TimePoint::min()) return silence(look, std::max(heard_, sign)) > dead_after_;
        return peer_heartbeat_ > Duration{0} && may_speak &&
               silence(look, heard_) > std::max(dead_after_, 2 * peer_heartbeat_);
    }

  private:
    Duration silence(const Look& look, TimePoint since) const noexcept {
        // What has arrived and was not handed over yet may be the sign. A loop that does not catch
        // up at all judges nevertheless.
        const bool behind = look.caught_up < look.now && look.now - look.caught_up < dead_after_;
        return (behind ? look.caught_up : look.now) - since - (look.stalled - stalled_then_);
    }

    Duration heartbeat_;
    Duration dead_after_;
    Duration peer_heartbeat_{0};
    TimePoint heard_;
    Duration stalled_then_{0};
    bool sent_ = false;
};

} // namespace netio::inline v0_2
