// SPDX-License-Identifier: Apache-2.0
#pragma once

// Incoming: the direction of one conversation in which this side receives: the user's receives, the
// state machine that keeps their books, and the rings.
//
// It calls nobody back; the conversation asks for what is done.

#include "stream/core/receiver.hpp"
#include "stream/core/ring_gauge.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/lending.hpp"
#include "stream/socket/lent_queue.hpp"
#include "stream/socket/ring_set.hpp"
#include "stream/socket/stream_socket.hpp"

#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace netio::stream::inline v0_2 {

class Incoming {
  public:
    Incoming(std::size_t limit_count, Lending lending)
        : lending_{lending}, receives_{limit_count} {}

    bool lends() const noexcept { return lending_.lends(); }
    bool may_be_lent() const noexcept { return lending_.may_be_lent(); }

    // Makes the first ring. Throws FabricError if there is no memory for it.
    RemoteRing open(const ReceiverOptions& options, MemoryDomain& domain);

    // ok, again. Throws FabricError if the memory cannot be registered; without a domain, where
    // nobody will write into it any more, it need not be.
    Status receive(const Slice& slice, Cookie cookie, Fill fill, MemoryDomain* domain);

    // Bytes that the oldest receive holds while it is not complete.
    std::uint64_t filled_bytes() const noexcept {
        return is_front_open() ? receiver_->front_filled_bytes() : 0;
    }
    // Moves the oldest receive, with the bytes that it holds, to other memory of the same size.
    // False: the peer writes to that memory itself.
    bool move_front(const Slice& to);

    ProtocolError on_transfer(const Immediate& transfer) {
        return receiver_->on_transfer(transfer.kind, transfer.bytes, transfer.notice);
    }
    // The bytes of a frame, which are put where they belong (R16).
    ProtocolError on_frame(const FrameNotice& notice, std::span<const std::byte> bytes);
    ProtocolError on_end(std::uint64_t total_bytes) { return receiver_->on_fin(total_bytes); }

    // Copies out of the ring, about so many bytes. True: that was not all.
    bool copy_out(std::uint64_t step_bytes);
    // Adds what the peer is to be told.
    void collect(ControlMessage& message, MemoryDomain& domain);
    // A larger ring, if one is worth having now and there is memory for it (P11).
    std::optional<RemoteRing> grow(std::optional<RingGauge>& gauge, Session& session);

    // The next receive that is complete.
    std::optional<Received> next_done();
    // The next one that will not be: the connection has ended. It says what it holds.
    std::optional<Received> next_canceled();
    // Every byte that the peer has sent is in a receive, and it sends no more.
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

    const Lending lending_;
    std::optional<Receiver> receiver_;
    LentQueue receives_;
    RingSet rings_;
    bool has_canceled_ = false;
};

} // namespace netio::stream::inline v0_2
