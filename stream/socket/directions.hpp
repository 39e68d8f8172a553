// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two directions of a stream's connection, Outgoing and Incoming, and the memory that each has
// borrowed.

// BorrowedSlices: the memory that one direction of a stream has borrowed from the user, in the
// order of the user's calls.
//
// A state machine identifies each slice by its number, from 0; this queue returns the memory and
// the user's cookie for a number. The front is removed when the user's memory is free again.

#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "netio/base/status.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/send_times.hpp"
#include "netio/session/session.hpp"
#include "stream/core/fifo.hpp"
#include "stream/core/receiver.hpp"
#include "stream/core/rtt_estimator.hpp"
#include "stream/core/sender.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace netio::stream::inline v0_3 {

class BorrowedSlices {
  public:
    // At most `limit_count` slices at once: is_full().
    explicit BorrowedSlices(std::size_t limit_count) : limit_count_{limit_count} {}

    bool empty() const noexcept { return slices_.empty(); }
    std::size_t size() const noexcept { return slices_.size(); }
    bool is_full() const noexcept { return slices_.size() >= limit_count_; }

    // Returns the number of the slice.
    std::uint64_t push(const Slice& slice, Cookie cookie) {
        NETIO_CHECK(!is_full());
        slices_.push_back({slice, cookie});
        return first_ + slices_.size() - 1;
    }
    // A slice that is still borrowed (checked).
    const Slice& at(std::uint64_t number) const {
        NETIO_CHECK(number >= first_);
        return slices_[static_cast<std::size_t>(number - first_)].slice;
    }
    // `size` bytes of it, from `offset` on.
    Slice slice(std::uint64_t number, std::uint64_t offset, std::uint64_t size) const {
        const Slice& whole = at(number);
        NETIO_CHECK(offset <= whole.size && size <= whole.size - offset);
        return {whole.buffer, whole.data + offset, static_cast<std::size_t>(size)};
    }
    const Slice& front() const { return at(first_); }
    // Replaces the front by other memory of the same size (checked).
    void replace_front(const Slice& slice) {
        NETIO_CHECK(slice.size == front().size);
        slices_.front().slice = slice;
    }
    Cookie pop_front() {
        ++first_;
        return slices_.pop_front().cookie;
    }

  private:
    struct Borrowed {
        Slice slice;
        Cookie cookie;
    };

    std::size_t limit_count_;
    Fifo<Borrowed> slices_;
    std::uint64_t first_ = 0; // number of the front
};

} // namespace netio::stream::inline v0_3

// Outgoing: the sending direction of one stream connection: the user's sends, the state machine
// that decides how their bytes are transferred, and the channel that carries them to the peer.
//
// It makes no callbacks; the connection asks for completed sends.

namespace netio::stream::inline v0_3 {

// How the bytes of one direction are transferred, as the state machine has decided: written into
// memory of the peer, or in frames of the session. The peer's hello selects one of the two for the
// whole connection.
class TransferChannel {
  public:
    // More pieces in one transfer cost more than they save.
    static constexpr std::size_t piece_limit = 16;

    virtual ~TransferChannel() = default;

    // The peer announces memory: a ring that the next transfers may use (R15), or a receive.
    virtual ProtocolError on_ring(const RemoteRing& ring) = 0;
    virtual ProtocolError on_advert(const Advert& advert) = 0;

    // Prepares memory of a send. Throws FabricError if it cannot be registered.
    virtual void prepare(const Slice& slice, MemoryDomain& domain) = 0;
    // Pieces of one transfer, up to piece_limit.
    virtual std::size_t piece_count(const Session& session) const = 0;
    // The number of these pieces that are sent without a copy, however long
    // (Sender::next_transfer).
    virtual std::size_t joined_count(const Session& session) const = 0;
    // Whether the next transfer may begin. If not, on_writable follows.
    virtual bool is_ready(Session& session) = 0;
    // Takes a transfer with the memory of its pieces; only after is_ready(). Returns false if the
    // connection has broken; its on_closed follows.
    virtual bool take(const Transfer& transfer, std::span<const Slice> pieces,
                      Session& session) = 0;
    // Bytes that were taken and not passed to the session yet.
    virtual std::uint64_t waiting_bytes() const = 0;
    // The session has sent a part of this transfer. Returns whether it was the last part.
    virtual bool on_sent(std::uint64_t transfer) = 0;
};

class Outgoing {
  public:
    explicit Outgoing(std::size_t limit_count) : sends_{limit_count} {}

    // `ring`: the peer's first ring. `writes`: this side may write into memory of the peer.
    ProtocolError open(const SenderOptions& options, const RemoteRing& ring, bool writes);

    // ok, again (limit_count sends are outstanding), closed (after shutdown). Throws FabricError if
    // the memory cannot be registered.
    Status send(const Slice& slice, Cookie cookie, MemoryDomain& domain, TimePoint now);
    // Ends the direction: no more sends follow. May be called more than once.
    void shutdown();

    ProtocolError on_advert(const Advert& advert);
    ProtocolError on_ack(std::uint64_t total_bytes) { return sender_->on_ack(total_bytes); }
    // Ring bytes that the peer's user has received.
    std::uint64_t acknowledged_bytes() const noexcept { return sender_->ring_acked_bytes(); }
    // Whether so little of the ring is unread that the peer may not acknowledge it.
    bool is_read() const noexcept { return sender_->is_ring_read(); }
    ProtocolError on_ring(const RemoteRing& ring);
    // This transfer, or a part of it, was sent.
    void on_sent(std::uint64_t transfer) {
        if (channel_->on_sent(transfer)) sender_->on_transfer_done(transfer);
    }

    // Passes everything that may be sent now to the session.
    void move(Session& session);
    // The total bytes of the stream, once, when the peer may be notified of the end.
    std::optional<std::uint64_t> next_end() {
        return channel_->waiting_bytes() == 0 ? sender_->next_fin() : std::nullopt;
    }
    bool has_sent_end() const noexcept { return sender_ && sender_->has_given_fin(); }

    // The next send that is done.
    std::optional<Cookie> next_done(TimePoint now);
    // The next send that is canceled, after the end of the connection.
    std::optional<Cookie> next_canceled();

    bool has_sends() const noexcept { return !sends_.empty(); }
    std::size_t send_count() const noexcept { return sends_.size(); }
    bool is_full() const noexcept { return sends_.is_full(); }
    std::uint64_t queued_bytes() const noexcept {
        return sender_ ? sender_->queued_bytes() + channel_->waiting_bytes() : 0;
    }
    SenderCounters counters() const { return sender_ ? sender_->counters() : SenderCounters{}; }
    std::uint64_t waits_for_capacity() const noexcept { return waits_for_capacity_; }
    const LatencyHistogram& latency() const noexcept { return times_.latency(); }

  private:
    bool take(const Transfer& transfer, std::span<const Piece> pieces, Session& session);

    std::optional<Sender> sender_;
    std::unique_ptr<TransferChannel> channel_;
    BorrowedSlices sends_;
    SendTimes times_;
    bool shut_down_ = false;
    bool waiting_for_capacity_ = false;
    std::uint64_t waits_for_capacity_ = 0;
};

} // namespace netio::stream::inline v0_3

// Incoming: the receiving direction of one stream connection: the user's receives, the state
// machine that tracks them, and the rings.
//
// It makes no callbacks; the connection asks for completed receives.

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
