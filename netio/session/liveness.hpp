// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether the peer is dead, and when this side has to send a heartbeat. Silence counts only while
// the own loop was running, and ends with a sign of life that the provider saw below our messages.
// Takes times, returns decisions; a plain value, not thread-safe.
//
//     if (liveness.is_doubtful(look)) dead = liveness.is_dead(look, provider's sign, ...);
//     if (liveness.must_beat(look)) send a heartbeat
//     look again after liveness.interval()

#include "netio/base/time.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace netio::inline v0_3 {

class Liveness {
  public:
    // The state of the own loop when it looks.
    struct Look {
        TimePoint now;
        TimePoint caught_up; // everything that had arrived by then was delivered
        Duration stalled{0}; // the total time in which it did not look
    };

    // heartbeat 0: sends none; dead_after 0: no silence is too long.
    Liveness(Duration heartbeat, Duration dead_after) noexcept
        : heartbeat_{heartbeat}, dead_after_{dead_after} {}

    // The interval in which the peer announced to send something; 0: none.
    void expect(Duration peer_heartbeat) noexcept { peer_heartbeat_ = peer_heartbeat; }
    void on_received(TimePoint now, Duration stalled) noexcept {
        heard_ = {.when = now, .stalled = stalled};
    }
    void on_sent() noexcept { sent_ = true; }

    // Time until the next look; `nullopt`: never look.
    std::optional<Duration> interval() const noexcept {
        if (heartbeat_ > Duration{0}) return heartbeat_;
        if (dead_after_ > Duration{0}) return dead_after_ / 4;
        return std::nullopt;
    }
    // Whether a heartbeat is due: nothing was sent since the last call, or the loop was stalled
    // since then, so that the last frame may be old.
    bool must_beat(const Look& look) noexcept {
        const bool was_away = look.stalled > std::exchange(asked_stalled_, look.stalled);
        const bool has_sent = std::exchange(sent_, false) && !was_away;
        return !has_sent && heartbeat_ > Duration{0};
    }

    // Whether nothing arrived for clearly longer than the interval in which healthy peers send. The
    // caller then asks the provider for a sign of life. It must not ask later, because the provider
    // may not know signs of the peer's host from before the first request; the silence of a process
    // would look like that of its host.
    bool is_doubtful(const Look& look) const noexcept {
        return dead_after_ > Duration{0} &&
               silence(look, heard_) > std::min(*interval() * 3 / 2, dead_after_ / 2);
    }
    // `sign`: the time of the last sign of life of the peer's host; min(): unknown. `may_speak`:
    // the peer has credits.
    bool is_dead(const Look& look, TimePoint sign, bool may_speak) noexcept {
        if (dead_after_ <= Duration{0}) return false;
        if (sign != TimePoint::min()) {
            note_sign(look, sign);
            return silence(look, sign_.when > heard_.when ? sign_ : heard_) > dead_after_;
        }
        return peer_heartbeat_ > Duration{0} && may_speak &&
               silence(look, heard_) > std::max(dead_after_, 2 * peer_heartbeat_);
    }

  private:
    struct Heard {
        TimePoint when;
        Duration stalled{0}; // total time by then in which this side's loop did not look
    };
    // For how long the loop was stalled when the sign arrived is unknown; since then it was at most
    // the time that has passed.
    void note_sign(const Look& look, TimePoint sign) noexcept {
        if (sign <= sign_.when) return;
        const Duration least = look.stalled - (look.now - sign);
        sign_ = {.when = sign, .stalled = std::max({sign_.stalled, heard_.stalled, least})};
    }
    Duration silence(const Look& look, const Heard& last) const noexcept {
        // An arrival that was not delivered yet may be a sign. A loop that never catches up decides
        // nevertheless.
        const bool behind = look.caught_up < look.now && look.now - look.caught_up < dead_after_;
        return (behind ? look.caught_up : look.now) - last.when - (look.stalled - last.stalled);
    }

    Duration heartbeat_;
    Duration dead_after_;
    Duration peer_heartbeat_{0};
    Heard heard_;
    Heard sign_{.when = TimePoint::min()}; // seen by the provider
    bool sent_ = false;
    Duration asked_stalled_{0}; // at the last call of must_beat()
};

} // namespace netio::inline v0_3
