// SPDX-License-Identifier: Apache-2.0
#pragma once

// The orderly end of a session: who has said what, and what may be concluded when the connection
// ends. Both sides do the same:
//
//     shutdown      nothing more of the service's will be sent
//     shutdown ack  the user of this side was given everything before the peer's shutdown, but for
//                   so many frames that it did not want any more
//
// A side that gets a shutdown answers with its own. When both have said both, everything is known
// to have arrived, and the connection may be closed. No I/O, no clock.

#include "netio/base/frame.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <cstdint>
#include <optional>

namespace netio::inline v0_2 {

class Shutdown {
  public:
    // close() was called here, and everything is to be done by `limit`. False: it had been.
    bool close(TimePoint limit = TimePoint::max()) noexcept;
    // The peer's two frames. False: it may not send this one now.
    [[nodiscard]] bool on_shutdown() noexcept;
    [[nodiscard]] bool on_ack(std::uint32_t unread) noexcept;
    // The user of this side gets so many frames of the peer's no more.
    void add_unread(std::uint32_t count) noexcept;
    // It was given all others. Only while awaits_user().
    void confirm() noexcept;

    // What is to be sent as soon as it can be.
    std::optional<FrameKind> next() const noexcept;
    void on_sent(FrameKind kind) noexcept;

    bool awaits_user() const noexcept { return theirs_ == Theirs::ended; }
    // Frames of the service's may be sent, and may come.
    bool may_send() const noexcept { return ours_ == Ours::open; }
    bool peer_may_send() const noexcept { return theirs_ == Theirs::open; }
    // Nothing at all is sent any more, and nothing may come.
    bool is_silent() const noexcept { return ours_ >= Ours::sent && theirs_ == Theirs::confirmed; }
    bool peer_is_silent() const noexcept {
        return theirs_ != Theirs::open && ours_ == Ours::confirmed;
    }
    // Both sides know that the other one knows.
    bool is_complete() const noexcept {
        return ours_ == Ours::confirmed && theirs_ == Theirs::confirmed;
    }
    // Who closes does not wait for ever, not even for its own user.
    TimePoint limit() const noexcept { return limit_; }
    // It is the peer's turn: it must make progress within the time-outs.
    bool awaits_peer() const noexcept {
        if (ours_ == Ours::confirmed) return theirs_ == Theirs::confirmed;
        return !may_send() && (closed_here_ || theirs_ == Theirs::confirmed);
    }
    // That the peer has left unread, as it said.
    std::uint32_t unread_by_peer() const noexcept { return unread_by_peer_; }
    std::uint32_t unread() const noexcept { return unread_; }

    // What the end of the connection, `cause`, means. `sent`: frames of the service's so far;
    // `outstanding`: those of them that the peer is not known to have taken.
    Closed judge(const Closed& cause, std::uint64_t sent, std::uint64_t outstanding) const;

  private:
    // In the order of their course.
    enum class Ours : std::uint8_t { open, due, sent, confirmed };
    enum class Theirs : std::uint8_t { open, ended, taken, confirmed };

    Ours ours_ = Ours::open;
    Theirs theirs_ = Theirs::open;
    bool closed_here_ = false;
    TimePoint limit_ = TimePoint::max();
    std::uint32_t unread_ = 0;
    std::uint32_t unread_by_peer_ = 0;
};

} // namespace netio::inline v0_2
