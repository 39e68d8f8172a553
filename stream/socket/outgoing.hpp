// SPDX-License-Identifier: Apache-2.0
#pragma once

// Outgoing: the direction of one conversation in which this side sends: the user's sends, the state
// machine that decides how their bytes travel, and what carries them there.
//
// It calls nobody back; the conversation asks for what is done.

#include "stream/core/sender.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/carrier.hpp"
#include "stream/socket/lent_queue.hpp"

#include "netio/base/status.hpp"
#include "netio/session/send_times.hpp"
#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace netio::stream::inline v0_2 {

class Outgoing {
  public:
    explicit Outgoing(std::size_t limit_count) : sends_{limit_count} {}

    // The peer's first ring is known, and whether it lends its memory.
    ProtocolError open(const SenderOptions& options, const RemoteRing& ring, bool lent);
    bool is_open() const noexcept { return sender_.has_value(); }

    // ok, again (as many as may be are outstanding), closed (after shutdown). Throws FabricError if
    // the memory cannot be registered.
    Status send(const Slice& slice, Cookie cookie, MemoryDomain& domain, TimePoint now);
    // No more sends. Twice is legal.
    void shutdown();

    ProtocolError on_advert(const Advert& advert);
    ProtocolError on_ack(std::uint64_t total_bytes) { return sender_->on_ack(total_bytes); }
    // Of what went through the ring: the peer's user has it.
    std::uint64_t acknowledged_bytes() const noexcept { return sender_->ring_acked_bytes(); }
    // It has so much of it that no acknowledgement need follow.
    bool is_read() const noexcept { return sender_->is_ring_read(); }
    ProtocolError on_ring(const RemoteRing& ring);
    // Of this transfer, or of a part of it, that has left.
    void on_sent(std::uint64_t transfer) {
        if (carrier_->on_sent(transfer)) sender_->on_transfer_done(transfer);
    }

    // Hands the session what may be sent now.
    void move(Session& session);
    // The end of the stream, once, when it is to be told.
    std::optional<std::uint64_t> next_end() {
        return carrier_->waiting_bytes() == 0 ? sender_->next_fin() : std::nullopt;
    }

    bool has_told_end() const noexcept { return sender_ && sender_->has_given_fin(); }

    // The next send that is done, by now.
    std::optional<Cookie> next_done(TimePoint now);
    // The next one that will never be: the connection has ended.
    std::optional<Cookie> next_canceled();

    bool has_sends() const noexcept { return !sends_.empty(); }
    std::size_t send_count() const noexcept { return sends_.size(); }
    bool is_full() const noexcept { return sends_.is_full(); }
    std::uint64_t queued_bytes() const noexcept {
        return sender_ ? sender_->queued_bytes() + carrier_->waiting_bytes() : 0;
    }
    // All that was handed to send().
    std::uint64_t total_bytes() const noexcept {
        return sender_ ? sender_->position().value() + sender_->queued_bytes() : 0;
    }
    SenderCounters counters() const { return sender_ ? sender_->counters() : SenderCounters{}; }
    std::uint64_t waits_for_capacity() const noexcept { return waits_for_capacity_; }
    const LatencyHistogram& latency() const noexcept { return times_.latency(); }

  private:
    bool take(const Transfer& transfer, std::span<const Piece> pieces, Session& session);

    std::optional<Sender> sender_;
    std::unique_ptr<Carrier> carrier_;
    LentQueue sends_;
    SendTimes times_;
    bool shut_down_ = false;
    bool waiting_for_capacity_ = false;
    std::uint64_t waits_for_capacity_ = 0;
};

} // namespace netio::stream::inline v0_2
