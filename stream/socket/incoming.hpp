// SPDX-License-Identifier: Apache-2.0
#pragma once

// Incoming: the receiving direction of one stream connection: the user's receives, the state
// machine that tracks them, and the rings.
//
// It makes no callbacks; the connection asks for completed receives.

#include "stream/core/receiver.hpp"
#include "stream/core/rtt_estimator.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/borrowed_slices.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/memory/buffer.hpp"
#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace netio::stream::inline v0_3 {

// Whether the peer writes into memory of this side, and what this side then announces of that
// memory. Without remote writes no memory is registered for them; bytes arrive in frames (R16).
// Where frames are sealed there are no remote writes in either direction, because a write cannot be
// authenticated.
class RemoteWriteMode {
  public:
    // `may_write`: a device checks each write of the peer (Transport::guards_memory), or the peer's
    // key has the right.
    static RemoteWriteMode choose(RemoteWrites choice, bool may_write) {
        const bool guarded = choice == RemoteWrites::guarded && may_write;
        return {guarded || choice == RemoteWrites::trusted, true};
    }
    static RemoteWriteMode sealed() { return {false, false}; }

    bool enabled() const noexcept { return enabled_; }
    // Whether the peer may offer its memory to this side.
    bool peer_may_enable() const noexcept { return peer_may_enable_; }
    // Called before the memory is announced to the peer. Throws FabricError if it cannot be
    // registered.
    void prepare(const Slice& slice, MemoryDomain& domain) const {
        if (enabled_) static_cast<void>(slice.buffer->registration(domain));
    }
    // The range that the peer writes to; all 0 without remote writes.
    RemoteSlice place(const Slice& slice, MemoryDomain& domain) const {
        if (!enabled_) return {};
        const Registration& registration = slice.buffer->registration(domain);
        const auto offset = static_cast<std::uint64_t>(slice.data - slice.buffer->data());
        return {.address = registration.base() + offset, .key = registration.key()};
    }

  private:
    RemoteWriteMode(bool enabled, bool peer_may_enable)
        : enabled_{enabled}, peer_may_enable_{peer_may_enable} {}

    bool enabled_;
    bool peer_may_enable_;
};

// The rings of one receiver by their numbers (Copy::ring), which count from 0 in the order of
// announcement: one, or two while the stream changes from one ring to the next (R15). Outlives the
// session whose peer writes into them.
class RingSet {
  public:
    // Adds the next ring and returns its announcement. Throws FabricError if there is no memory, or
    // no more memory may be locked; then nothing is added.
    RemoteRing add(std::uint64_t bytes, const RemoteWriteMode& mode, MemoryDomain& domain);
    // Frees the oldest ring, which must have this number (checked).
    void drop(std::uint32_t number);
    // The memory of an existing ring (checked).
    std::byte* at(std::uint32_t number) const;

    std::size_t size() const noexcept { return rings_.size(); }

  private:
    Fifo<std::unique_ptr<RegisteredBuffer>> rings_;
    std::uint32_t first_ = 0; // number of the front
};

class Incoming {
  public:
    Incoming(std::size_t limit_count, RemoteWriteMode mode) : mode_{mode}, receives_{limit_count} {}

    const RemoteWriteMode& mode() const noexcept { return mode_; }

    // Creates the first ring. Throws FabricError if there is no memory for it.
    RemoteRing open(const ReceiverOptions& options, MemoryDomain& domain);

    // ok, again. Throws FabricError if the memory cannot be registered. `domain` is null after the
    // end of the session: the peer writes no more, so the memory is not registered.
    Status receive(const Slice& slice, Cookie cookie, Fill fill, MemoryDomain* domain);

    // Bytes that the oldest, incomplete receive contains.
    std::uint64_t filled_bytes() const noexcept {
        return is_front_open() ? receiver_->front_filled_bytes() : 0;
    }
    // Moves the oldest receive, with its bytes, to other memory of the same size. Returns false if
    // the peer writes into that memory, so it cannot be moved.
    bool move_front(const Slice& to);

    ProtocolError on_transfer(const Immediate& transfer) {
        return receiver_->on_transfer(transfer.kind, transfer.bytes, transfer.notice);
    }
    // Copies the bytes of a frame to their place (R16).
    ProtocolError on_frame(const FrameNotice& notice, std::span<const std::byte> bytes);
    ProtocolError on_end(std::uint64_t total_bytes) { return receiver_->on_fin(total_bytes); }

    // Copies about `step_bytes` out of the ring. Returns whether more bytes are left to copy.
    bool copy_out(std::uint64_t step_bytes);
    // Bytes of the ring for the user to read where they lie; empty if there are none, or if a
    // receive is posted. consume() frees the first of them.
    std::span<const std::byte> peek() const;
    void consume(std::size_t bytes);
    // Whether bytes have come into the ring since the last call, and wait without a receive.
    bool take_news() noexcept;

    // Adds adverts and acknowledgements for the peer.
    void collect(ControlMessage& message, MemoryDomain& domain);
    // Adds a larger ring if the stream needs one and there is memory for it (P11).
    std::optional<RemoteRing> grow(std::optional<RingGauge>& gauge, Session& session);

    // The next receive that is complete.
    std::optional<Received> next_done();
    // The next receive that is canceled, after the end of the connection, with its bytes.
    std::optional<Received> next_canceled();
    // Whether the peer has ended the stream, and all its bytes are in receives.
    bool has_ended() const noexcept { return receiver_ && receiver_->is_finished(); }

    std::size_t receive_count() const noexcept { return receives_.size(); }
    // Bytes that have arrived and wait for a receive.
    std::uint64_t unread_bytes() const noexcept {
        return receiver_ ? receiver_->ring_used_bytes() : 0;
    }
    ReceiverCounters counters() const {
        return receiver_ ? receiver_->counters() : ReceiverCounters{};
    }

  private:
    bool is_front_open() const noexcept {
        return receiver_ && !receives_.empty() &&
               receiver_->open_receive_count() == receives_.size();
    }
    Advert complete(const LocalAdvert& advert, MemoryDomain& domain) const;
    void copy(const Copy& copy, const std::byte* from);

    const RemoteWriteMode mode_;
    std::optional<Receiver> receiver_;
    BorrowedSlices receives_;
    RingSet rings_;
    bool has_canceled_ = false;
    std::uint64_t reported_bytes_ = 0; // of the ring, by take_news()
};

} // namespace netio::stream::inline v0_3
