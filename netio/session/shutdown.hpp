// SPDX-License-Identifier: Apache-2.0
#pragma once

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

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_3 {

class Shutdown {
  public:
    // close() was called on this side; it has to be complete by `limit`. Returns false if it was
    // called before.
    bool close(TimePoint limit = TimePoint::max()) noexcept;
    // The peer's two frames. Return false if the peer must not send them now.
    [[nodiscard]] bool on_shutdown() noexcept;
    [[nodiscard]] bool on_ack(std::uint32_t unread) noexcept;
    // The user of this side will not receive this many frames.
    void add_unread(std::uint32_t count) noexcept;
    // The user has received all others. Only while awaits_user().
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
