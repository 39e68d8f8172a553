// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sending half of a session: flow control by credits, send slots with their memory, and the
// frames that the peer has not acknowledged. It posts frames and writes to the connection. Not
// thread-safe.

#include "netio/access/frame_seal.hpp"
#include "netio/base/byte_budget.hpp"
#include "netio/base/frame.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/credits.hpp"
#include "netio/session/frames.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// Counts the messages that the peer is not known to have taken: it takes them in order and returns
// a credit for each. Only messages of the service are reported; the session's own only take part in
// the order. A plain value.
class UnackedFrames {
  public:
    void on_service_sent() noexcept {
        ++messages_;
        ++sent_;
    }
    void on_own_sent() { own_.push_back(messages_++); }
    void on_credits(std::uint64_t returned) noexcept {
        taken_ += returned;
        while (!own_.empty() && own_.front() < taken_)
            own_.pop_front();
    }

    // Messages of the service: all that were sent, and those of them without acknowledgement.
    std::uint64_t sent() const noexcept { return sent_; }
    std::uint64_t outstanding() const noexcept { return messages_ - taken_ - own_.size(); }

  private:
    std::uint64_t messages_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t sent_ = 0;
    std::deque<std::uint64_t> own_; // numbers of the session's own messages, not yet taken
};

// The session's own memory of each send slot: a header with a small body and a tag, and a larger
// buffer where a frame is gathered or encrypted. Larger buffers count against a budget that all
// sessions of a transport share. They are released when the frame was sent; a few are kept for
// later frames.
class SendBufferPool {
  public:
    // Offset of the tag in a slot, for a frame whose body lies elsewhere.
    static constexpr std::size_t tag_at = frame_header_bytes + frame_extension_limit;

    SendBufferPool(std::size_t slot_count, ByteBudget& budget)
        : heads_{slot_count * slot_bytes}, gathers_(slot_count), budget_{budget}, share_{budget} {
        kept_.reserve(slot_count);
    }

    // Called before there is an endpoint, so that a failure to register is detected early.
    void register_in(MemoryDomain& domain) { heads_.registration(domain); }
    Slice head(std::uint32_t slot) noexcept { return heads_.slice(slot * slot_bytes, slot_bytes); }
    // Returns a buffer for a slot that has none. Its size grows with the gathered frames, not with
    // the size that the peer announces. Returns null if the budget is exhausted while other slots
    // of the session have buffers. A first or a small buffer is always granted, because can_send()
    // has promised it.
    RegisteredBuffer* gather(std::uint32_t slot, std::size_t bytes, std::size_t limit);
    // The frame of the slot was sent.
    void release(std::uint32_t slot) noexcept;
    // Whether gather() has failed, and no buffer was released since.
    bool is_short() const noexcept { return is_short_; }
    // Bytes that are in use, or kept for later frames.
    std::size_t held() const noexcept { return share_.held(); }

  private:
    using Buffer = std::unique_ptr<RegisteredBuffer>;
    static constexpr std::size_t slot_bytes = tag_at + access::seal_tag_bytes;

    Buffer take_kept() noexcept;
    void drop(Buffer& memory) noexcept;
    Buffer allocate(std::size_t bytes);

    RegisteredBuffer heads_;
    std::vector<Buffer> gathers_; // by slot
    std::vector<Buffer> kept_;
    std::size_t kept_bytes_ = 0;
    std::size_t used_count_ = 0;
    bool is_short_ = false;
    ByteBudget& budget_;
    ByteShare share_;
};

class SendWindow {
  public:
    // `budget`: limits what all sessions copy in order to send it.
    SendWindow(std::size_t slot_count, ByteBudget& budget);

    // Known once the peer's hello is.
    struct Terms {
        std::size_t receive_count = 0;      // of this side
        std::size_t peer_receive_count = 0; // of the peer
        std::size_t frame_bytes = 0;        // the largest frame that peer and provider take
        std::size_t segment_limit = 1;
        bool by_immediate = false; // the fabric notifies the peer of writes
    };
    void open(const Terms& terms);
    bool is_open() const noexcept { return credits_.has_value(); }
    // Seals all frames from now on. The peer has room for the seal after the largest frame.
    void seal_with(access::FrameSealer sealer) { sealer_.emplace(std::move(sealer)); }
    // Called before there is an endpoint, so that a failure to register is detected early.
    void register_memory(MemoryDomain& domain) { memory_.register_in(domain); }

    bool can_send() const noexcept;
    bool can_write() const noexcept;
    // Both return whether it is possible now; if not, take_wish() returns true once it is.
    bool request_send() noexcept;
    bool request_write() noexcept;
    // Whether a send or write that was impossible when requested is possible now. Resets the
    // request.
    bool take_wish() noexcept;

    // Return ok, again, closed (the connection), too_large or too_many_segments. Both throw
    // FabricError if memory cannot be registered.
    Status send(Connection& connection, const OutgoingFrame& frame, std::optional<Cookie> cookie);
    Status write(Connection& connection, const OutgoingWrite& write, Cookie cookie);
    // A frame of the session itself, which may use the reserved slot and credit.
    bool can_send_own() const noexcept;
    Status send_own(Connection& connection, FrameKind kind, std::span<const std::byte> body = {});
    // The last frame of all. Returns `again` if there is no credit at all.
    Status send_last(Connection& connection, FrameKind kind, std::span<const std::byte> body);
    // Slices of a frame that are sent without copying; the remaining ones are gathered.
    std::size_t segment_limit() const noexcept;

    struct Released {
        std::optional<Cookie> cookie; // of the frame, if it had one
        bool own = false;             // a frame of the session itself
    };
    // The fabric has completed the frame or write of this slot.
    Released release(Cookie slot) noexcept;

    CreditError on_received(std::uint32_t credits);
    // The peer announces its number of receives.
    CreditError on_window(std::uint32_t count);
    // For what happens to this side's receives. Only if open.
    Credits& flow() noexcept { return *credits_; }
    // Whether a frame with nothing but credits is due: many are owed, or a heartbeat was sent. The
    // latter lets an otherwise idle peer shrink a window that has grown: after a heartbeat, such
    // frames use each of its receives once. They leave enough credits to the service.
    bool must_send_credit() const noexcept;

    bool is_idle() const noexcept { return free_slots_.size() == slots_.size(); }
    std::size_t body_limit() const noexcept { return body_limit_; }
    const UnackedFrames& unacked() const noexcept { return unacked_; }
    // Only those of sending.
    SessionCounters counters() const noexcept;

  private:
    // One frame or write in the fabric. The header of a frame lives in memory_ until it is sent.
    struct Slot {
        std::optional<Cookie> cookie;
        bool own = false;
    };
    // What the service is notified of once it is possible.
    struct Wishes {
        bool send = false;
        bool write = false;
        bool waited = false; // for credits, and no frame of the service was sent since
    };
    struct Sweep {
        std::uint32_t usual = 0; // the peer's receives at the beginning
        std::uint32_t left = 0;  // credit frames
    };

    Status post(Connection& connection, const OutgoingFrame& frame, std::size_t body_bytes,
                std::optional<Cookie> cookie);
    Status refuse(bool& wanted) noexcept;
    // Each returns the number of pieces; 0: there is no memory now.
    std::size_t lay_out(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                        std::span<Slice> pieces);
    std::size_t attach(std::span<const Slice> slices, std::uint32_t slot, std::span<Slice> pieces);
    std::size_t seal(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                     std::size_t behind, std::span<Slice> pieces);

    SendBufferPool memory_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::optional<Credits> credits_;
    UnackedFrames unacked_;
    std::optional<access::FrameSealer> sealer_;
    std::uint32_t next_sequence_ = 0;
    std::size_t body_limit_ = 0;
    std::size_t segment_limit_ = 1;
    SessionCounters counters_;
    bool by_immediate_ = false;
    Wishes wishes_;
    Sweep sweep_;
};

} // namespace netio::inline v0_3
