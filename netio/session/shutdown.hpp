// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a session ends: in order, or because its peer is dead.

// The orderly end of a session: which frames were exchanged, and what the end of the connection
// means. Both sides do the same:
//
//     shutdown      this side sends no more messages of the service
//     shutdown ack  the user of this side has received everything before the peer's shutdown,
//                   except for a number of frames that it no longer wanted
//
// A side that receives a shutdown answers with its own. When both sides have sent both, each side
// knows that everything has arrived, and the connection may be closed. A shutdown with a body is
// not orderly: it has the reason for an abort (docs/wire-formats.md, "Shutdown"). No I/O, no clock.

#include "netio/base/frame.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace netio::inline v0_3 {

class Shutdown {
  public:
    // Begins to close on this side; `limit`: when the close must be complete. Returns false if it
    // was called before.
    bool close(TimePoint limit = TimePoint::max()) noexcept;
    // The peer's two frames. Return false if the peer must not send them now.
    [[nodiscard]] bool on_shutdown() noexcept;
    [[nodiscard]] bool on_ack(std::uint32_t unread) noexcept;
    // Counts frames that the user of this side will not receive.
    void add_unread(std::uint32_t count) noexcept;
    // Call it when the user has received all other frames of the peer. Only while awaits_user().
    void confirm() noexcept;

    // The frame that is to be sent as soon as possible.
    std::optional<FrameKind> next() const noexcept;
    void on_sent(FrameKind kind) noexcept;

    bool awaits_user() const noexcept { return theirs_ == Theirs::ended; }
    // Whether messages of the service may be sent, and may arrive.
    bool may_send() const noexcept { return ours_ == Ours::open; }
    bool peer_may_send() const noexcept { return theirs_ == Theirs::open; }
    // Whether nothing at all is sent any more, and nothing may arrive.
    bool is_silent() const noexcept { return ours_ >= Ours::sent && theirs_ == Theirs::confirmed; }
    bool peer_is_silent() const noexcept {
        return theirs_ != Theirs::open && ours_ == Ours::confirmed;
    }
    // Whether both sides know that everything was exchanged.
    bool is_complete() const noexcept {
        return ours_ == Ours::confirmed && theirs_ == Theirs::confirmed;
    }
    // The time limit of close(), which also holds for the own user.
    TimePoint limit() const noexcept { return limit_; }
    // Whether the peer must make progress within the time-outs.
    bool awaits_peer() const noexcept {
        if (ours_ == Ours::confirmed) return theirs_ == Theirs::confirmed;
        return !may_send() && (closed_here_ || theirs_ == Theirs::confirmed);
    }
    // Frames that the peer has left unread, as it reported.
    std::uint32_t unread_by_peer() const noexcept { return unread_by_peer_; }
    std::uint32_t unread() const noexcept { return unread_; }

    // What the end of the connection, `cause`, means. `sent`: frames of the service so far;
    // `outstanding`: those of them without acknowledgement.
    Closed judge(const Closed& cause, std::uint64_t sent, std::uint64_t outstanding) const;

  private:
    enum class Ours : std::uint8_t { open, due, sent, confirmed };
    enum class Theirs : std::uint8_t { open, ended, taken, confirmed };

    Ours ours_ = Ours::open;
    Theirs theirs_ = Theirs::open;
    bool closed_here_ = false;
    TimePoint limit_ = TimePoint::max();
    std::uint32_t unread_ = 0;
    std::uint32_t unread_by_peer_ = 0;
};

// Why this side aborts, in the body of a shutdown frame.
struct AbortReason {
    static constexpr std::uint8_t too_slow = 1;
    static constexpr std::uint8_t unknown_option = 2; // more may be added

    std::uint8_t why = too_slow;
    // too_slow: milliseconds in which the peer received nothing; unknown_option: the type of the
    // option of its open frame.
    std::uint32_t value = 0;

    friend bool operator==(const AbortReason&, const AbortReason&) = default;
};

inline constexpr std::size_t abort_reason_bytes = 8;
std::array<std::byte, abort_reason_bytes> encode(const AbortReason& reason) noexcept;
// Returns `nullopt` if it is malformed. Ignores further bytes, and accepts unknown reasons.
std::optional<AbortReason> decode_abort_reason(std::span<const std::byte> in) noexcept;
// What it means on the side that receives it.
Closed closed_by(const AbortReason& reason, const std::string& peer_address);

} // namespace netio::inline v0_3

// Whether the peer is dead, and when this side has to send a heartbeat. Silence counts only while
// the own loop was running, and ends with a sign of life that the provider saw below our messages.
// Takes times, returns decisions; a plain value, not thread-safe.
//
//     if (liveness.is_suspect(look)) dead = liveness.is_dead(look, provider's sign, ...);
//     if (liveness.must_beat(look)) send a heartbeat
//     look again after liveness.interval()

namespace netio::inline v0_3 {

class Liveness {
  public:
    // The state of this side's loop at the time of a check.
    struct Look {
        TimePoint now;
        TimePoint caught_up; // everything that had arrived by this time was delivered
        Duration stalled{0}; // the total time in which the loop did not poll (EventLoop::stalled)
    };

    // heartbeat 0: sends none; dead_after 0: no silence is too long.
    Liveness(Duration heartbeat, Duration dead_after) noexcept
        : heartbeat_{heartbeat}, dead_after_{dead_after} {}

    // Sets the interval in which the peer has announced to send something; 0: none.
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
    bool is_suspect(const Look& look) const noexcept {
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
