// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a session may send at the moment, and what of it is in the fabric's hands: credits, and
// slots with their memory. It decides and posts; it knows nothing of why. Not thread-safe.

#include "netio/session/credits.hpp"
#include "netio/session/frame_seal.hpp"
#include "netio/session/frames.hpp"
#include "netio/session/send_ledger.hpp"
#include "netio/session/slot_memory.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::inline v0_2 {

class SendWindow {
  public:
    // `budget`: of what all sessions copy to send it.
    SendWindow(std::size_t slot_count, ByteBudget& budget);

    // Known when the peer's hello is.
    struct Terms {
        std::size_t receive_count = 0;      // here
        std::size_t peer_receive_count = 0; // and there
        std::size_t frame_bytes = 0;        // the largest that the peer and the provider take
        std::size_t segment_limit = 1;
        bool by_immediate = false; // writes are told of by the fabric
    };
    void open(const Terms& terms);
    bool is_open() const noexcept { return credits_.has_value(); }
    // From the next frame on. The peer has room for what is put behind the largest frame.
    void seal_with(FrameSealer sealer) { sealer_.emplace(std::move(sealer)); }
    // Before there is an endpoint: what cannot be registered is found out then.
    void register_memory(MemoryDomain& domain) { memory_.register_in(domain); }

    bool can_send() const noexcept;
    bool can_write() const noexcept;
    // false: take_wish() will be true when there is.
    bool request_send() noexcept;
    bool request_write() noexcept;
    // What was wanted in vain can be had now. Once.
    bool take_wish() noexcept;

    // ok, again, closed (the connection), too_large, too_many_segments. Both throw FabricError if
    // memory cannot be registered.
    Status send(Connection& connection, const OutgoingFrame& frame, std::optional<Cookie> cookie);
    Status write(Connection& connection, const OutgoingWrite& write, Cookie cookie);
    // A frame of the session's own, which may take what is kept in reserve.
    bool can_send_own() const noexcept;
    Status send_own(Connection& connection, FrameKind kind, std::span<const std::byte> body = {});
    // Nothing may be sent behind it. `again`: there is no credit at all.
    Status send_last(Connection& connection, FrameKind kind, std::span<const std::byte> body);
    // Slices of a frame that leave from where they lie; of more, those behind are gathered.
    std::size_t segment_limit() const noexcept;

    // What has left the fabric's hands.
    struct Released {
        std::optional<Cookie> cookie; // if it had one
        bool own = false;             // a frame of the session's
    };
    Released release(Cookie slot) noexcept;

    CreditError on_received(std::uint32_t credits);
    // The peer has so many receives now.
    CreditError on_window(std::uint32_t count);
    // What becomes of this side's receives. Only when open.
    Credits& flow() noexcept { return *credits_; }
    // A frame with nothing but credits is due: many are owed, or a heartbeat was sent. Where
    // nothing else is, nothing gives the peer occasion to make a window smaller that has grown, so
    // behind a heartbeat such frames use each of its receives once. They leave the peer's credits
    // to what the service may have to send.
    bool must_send_credit() const noexcept;

    bool is_idle() const noexcept { return free_slots_.size() == slots_.size(); }
    std::size_t body_limit() const noexcept { return body_limit_; }
    const SendLedger& ledger() const noexcept { return ledger_; }
    // Of what was sent.
    SessionCounters counters() const noexcept;

  private:
    // One frame or write. The header of a frame lives in memory_ until it is sent.
    struct Slot {
        std::optional<Cookie> cookie;
        bool own = false;
    };

    Status post(Connection& connection, const OutgoingFrame& frame, std::size_t body_bytes,
                std::optional<Cookie> cookie);
    // What the service is told of when it can be had.
    struct Wishes {
        bool send = false;
        bool write = false;
        bool waited = false; // for credits, and no frame of the service's has left since
    };

    Status refuse(bool& wanted) noexcept;
    // Each: the number of pieces. None: there is no memory now.
    std::size_t lay_out(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                        std::span<Slice> pieces);
    std::size_t attach(std::span<const Slice> slices, std::uint32_t slot, std::span<Slice> pieces);
    std::size_t seal(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                     std::size_t behind, std::span<Slice> pieces);

    SlotMemory memory_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::optional<Credits> credits_;
    SendLedger ledger_;
    std::optional<FrameSealer> sealer_;
    std::uint32_t next_sequence_ = 0;
    std::size_t body_limit_ = 0;
    std::size_t segment_limit_ = 1;
    SessionCounters counters_;
    bool by_immediate_ = false;
    Wishes wishes_;
    struct Sweep {
        std::uint32_t usual = 0; // receives of the peer's, as it began
        std::uint32_t left = 0;  // frames
    };
    Sweep sweep_;
};

} // namespace netio::inline v0_2
