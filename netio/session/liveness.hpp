// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether the peer still lives, and when this side has to show that it does. Silence alone proves
// nothing: it counts only while our loop looked, and a sign that the provider saw below our
// messages ends it. Takes times, gives verdicts; a plain value, not thread-safe.
//
//     if (liveness.is_doubtful(look)) dead = liveness.is_dead(look, provider's sign, ...);
//     if (liveness.must_beat(look)) send a heartbeat
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
        heard_ = {.when = now, .stalled = stalled};
    }
    void on_sent() noexcept { sent_ = true; }

    // How long to wait for the next look; nothing: never look.
    std::optional<Duration> interval() const noexcept {
        if (heartbeat_ > Duration{0}) return heartbeat_;
        if (dead_after_ > Duration{0}) return dead_after_ / 4;
        return std::nullopt;
    }
    // Nothing was sent since it was asked last; or our loop was away since, and what was sent may
    // be as old as that.
    bool must_beat(const Look& look) noexcept {
        const bool was_away = look.stalled > std::exchange(asked_stalled_, look.stalled);
        const bool has_sent = std::exchange(sent_, false) && !was_away;
        return !has_sent && heartbeat_ > Duration{0};
    }

    // Nothing has come for clearly longer than the time between two looks, at which healthy peers
    // speak: ask the provider. It may not know what the peer's host showed before it was first
    // asked, so whoever asks late takes the silence of a process for that of its host.
    bool is_doubtful(const Look& look) const noexcept {
        return dead_after_ > Duration{0} &&
               silence(look, heard_) > std::min(*interval() * 3 / 2, dead_after_ / 2);
    }
    // `sign`: when the peer's host showed that it lives; min(): unknown. `may_speak`: the peer has
    // credits left.
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
        Duration stalled{0}; // how long in all our loop had not looked by then
    };
    // How long our loop had not looked when the sign came nobody knows; since then it was no
    // longer than all the time since.
    void note_sign(const Look& look, TimePoint sign) noexcept {
        if (sign <= sign_.when) return;
        const Duration least = look.stalled - (look.now - sign);
        sign_ = {.when = sign, .stalled = std::max({sign_.stalled, heard_.stalled, least})};
    }
    Duration silence(const Look& look, const Heard& last) const noexcept {
        // What has arrived and was not handed over yet may be the sign. A loop that does not catch
        // up at all judges nevertheless.
        const bool behind = look.caught_up < look.now && look.now - look.caught_up < dead_after_;
        return (behind ? look.caught_up : look.now) - last.when - (look.stalled - last.stalled);
    }

    Duration heartbeat_;
    Duration dead_after_;
    Duration peer_heartbeat_{0};
    Heard heard_;
    Heard sign_{.when = TimePoint::min()}; // that the provider saw
    bool sent_ = false;
    Duration asked_stalled_{0}; // of the look when must_beat() was asked last
};

} // namespace netio::inline v0_2
