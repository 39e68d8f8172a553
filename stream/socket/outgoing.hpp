// SPDX-License-Identifier: Apache-2.0
#pragma once

// Outgoing: the sending direction of one stream connection: the user's sends, the state machine
// that decides how their bytes are transferred, and the channel that carries them to the peer.
//
// It makes no callbacks; the connection asks for completed sends.

#include "stream/core/sender.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/borrowed_slices.hpp"

#include "netio/base/status.hpp"
#include "netio/session/send_times.hpp"
#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

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
    // No more sends follow. May be called more than once.
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
