// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receiver: tracks the receiving side of one direction of a stream.
//
// A pure state machine. Its inputs are the user's receives and the transfers that arrived; its
// outputs are what to advertise, what to copy out of the ring, what to acknowledge and which
// receives are complete. It touches no memory, no clock and no network; receives are ids with
// lengths. One caller owns it; it is not thread-safe. A violation by the peer returns a
// ProtocolError, which is final; a mistake of the caller aborts.
//
//     stream::Receiver receiver{stream::improved_receiver(ring_bytes)};
//     receiver.post(ReceiveId{1}, buffer_bytes, false);
//     // for every arriving write:    receiver.on_transfer(kind, bytes);
//     // and after each of these:
//     while (const auto copy = receiver.next_copy()) { copy_bytes(*copy); receiver.on_copied(); }
//     while (const auto done = receiver.next_completion()) tell_user(*done);
//     collect_control(receiver, ...); // next_advert, next_ack
//     // and for a ring that may grow: wanted_ring, next_unused_ring
//
// The phase (R6):
//
//                    indirect transfer arrives
//      +-----------+ ------------------------> +-----------+
//      |  direct   |                           | indirect  |
//      | even P_r  | <------------------------ |  odd P_r  |
//      +-----------+   first advert, when the  +-----------+
//                      ring is empty (R3)

#include "stream/core/counters.hpp"
#include "stream/core/fifo.hpp"
#include "stream/core/options.hpp"
#include "stream/core/protocol.hpp"
#include "stream/core/wire.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace netio::stream::inline v0_3 {

class Receiver {
  public:
    // Throws std::invalid_argument (stream/core/options.hpp).
    explicit Receiver(const ReceiverOptions& options);

    // A user's receive; receives are filled in the order of posting. It completes with the bytes of
    // one transfer or of the ring, or, with `wait_all`, only when it is full (R9). A receive of 0
    // bytes completes in its turn (R11). Its memory is in use until it completes: it may have been
    // advertised, and a receive cannot be withdrawn.
    void post(ReceiveId id, std::uint64_t bytes, bool wait_all);

    ProtocolError on_transfer(TransferKind kind, std::uint32_t bytes, RingNotice notice = {});
    // The same for bytes that came in a frame (R16); reports where the caller must put them, at
    // once.
    ProtocolError on_frame(const FrameNotice& notice, std::uint32_t bytes, Place& place);
    // The peer sent `total_bytes` and will send no more (R12).
    ProtocolError on_fin(std::uint64_t total_bytes);

    // The next advert to send, if one may be sent now (R3). A returned advert counts as sent.
    std::optional<LocalAdvert> next_advert();

    // Bytes to copy, at most `limit_bytes`; nullopt until on_copied() has reported the previous
    // copy. Copying in small steps does not delay other work.
    std::optional<Copy> next_copy(std::uint64_t limit_bytes = unlimited_bytes);
    void on_copied();

    // The bytes of the ring that the user reads where they lie, as far as they are contiguous;
    // nullopt if there are none, or if a receive is posted, which gets them. consume() frees the
    // first of them: as a receive of this size would, which was never advertised.
    std::optional<RingPart> peek() const;
    void consume(std::uint64_t bytes);

    // The size of a larger ring that the stream may need (P11), until one of the next three calls.
    std::optional<std::uint64_t> wanted_ring() const noexcept { return wanted_ring_; }
    // Call it if the ring is large enough, as RingGauge decides (stream/core/rtt_estimator.hpp).
    void postpone_ring() noexcept { wanted_ring_.reset(); }
    // Call it when the wanted ring exists, and its announcement was sent after all earlier
    // messages.
    void announce_ring();
    // Call it if there is no memory for the wanted ring: the ring stays unchanged.
    void refuse_ring();
    // The number (Copy::ring) of a ring that is not used any more, neither by writes nor by copies.
    // Each number is returned once (R15).
    std::optional<std::uint32_t> next_unused_ring();

    // The total of ring bytes copied out, when it is due (P6, P10), and when anything is
    // unacknowledged.
    std::optional<std::uint64_t> next_ack();
    std::optional<std::uint64_t> next_early_ack();

    // Completed receives, in the order of posting.
    std::optional<ReceiveCompletion> next_completion();

    Sequence position() const noexcept { return delivered_; } // S_r
    Phase phase() const noexcept { return phase_; }           // P_r
    Sequence estimate() const noexcept { return estimate_; }  // S'_r
    std::uint64_t ring_used_bytes() const noexcept {          // b_r
        return ring_received_ - ring_copied_;
    }
    std::uint64_t unacknowledged_bytes() const noexcept { return ring_copied_ - ring_acked_; }
    std::size_t open_advert_count() const noexcept { return open_adverts_; }
    std::size_t open_receive_count() const noexcept { return receives_.size(); }
    // Bytes that the receive at the front contains already.
    std::uint64_t front_filled_bytes() const {
        return receives_.empty() ? 0 : receives_.front().filled;
    }
    // Whether the peer has ended the stream and every byte of it is in a receive.
    bool is_finished() const noexcept { return ended_ && ring_used_bytes() == 0; }
    ProtocolError error() const noexcept { return error_; }
    const ReceiverOptions& options() const noexcept { return options_; }
    const ReceiverCounters& counters() const noexcept { return counters_; }

    // Aborts if the state is inconsistent.
    void check_invariants() const;

  private:
    friend struct Describe; // for tests/model: distinguishes states

    struct Receive {
        ReceiveId id;
        std::uint64_t bytes;
        std::uint64_t filled;
        bool wait_all;
        bool advertised;
    };

    ProtocolError fail(ProtocolError error);
    ProtocolError take(const FrameNotice& notice, std::uint32_t bytes);
    ProtocolError on_direct(std::uint32_t bytes, bool more);
    ProtocolError on_indirect(std::uint32_t bytes, RingNotice notice);
    bool change_ring();
    void leave_old_ring();
    bool ring_is_too_small() const;
    void deliver(std::uint64_t bytes);
    void complete_front();
    void complete_trivial();
    void revoke_adverts();
    bool may_advertise(const Receive& receive) const;
    Sequence advert_sequence() const;

    ReceiverOptions options_;

    Sequence delivered_;                 // S_r
    Sequence estimate_;                  // S'_r, kept up to date in both settings of R5
    Phase phase_;                        // P_r
    Fifo<Receive> receives_;             // q_R
    std::size_t first_unadvertised_ = 0; // of receives_
    std::size_t open_adverts_ = 0;       // advertised and not complete (k_a, in an odd phase)
    Fifo<ReceiveCompletion> completions_;

    RingSpan ring_;                    // that the peer writes to
    std::optional<RingSpan> old_ring_; // R15: the one before it, until it is copied out
    std::optional<std::uint32_t> unused_ring_;
    std::uint32_t ring_number_ = 0;            // of ring_
    std::uint64_t announced_ring_bytes_ = 0;   // R15: until the peer writes to it; 0: none is
    std::optional<std::uint64_t> wanted_ring_; // P11
    bool ring_refused_ = false;
    std::uint64_t ring_received_ = 0;
    std::uint64_t ring_copied_ = 0;
    std::uint64_t ring_acked_ = 0;
    std::uint64_t copying_bytes_ = 0;
    std::uint64_t last_indirect_bytes_ = 0;
    bool owes_answer_ = false; // P10
    bool ended_ = false;
    ProtocolError error_ = ProtocolError::none;
    ReceiverCounters counters_;
};

// Puts the messages of a receiver for its peer into one control message (P5).
//
// A late acknowledgement costs nothing, but an early one lets a waiting sender fill the ring at
// once, which makes the adverts after it stale. So adverts are sent first, and acknowledgements
// that are not due yet are sent with them. The published order and one item per message are an
// option.
//
// Adds to `message` until it is full or nothing is left to send. `complete_advert(LocalAdvert)`
// returns the Advert with the address and key of the memory. Send the message only if it has items:
// what was taken from the receiver counts as sent.
template <class CompleteAdvert>
void collect_control(Receiver& receiver, CompleteAdvert&& complete_advert,
                     ControlMessage& message) {
    const ReceiverOptions& options = receiver.options();
    const std::size_t limit = std::min(options.batch_limit_count, adverts_per_message + 1);
    const auto has_capacity = [&] { return message.item_count() < limit; };
    if (!options.adverts_first && has_capacity()) message.acknowledged_bytes = receiver.next_ack();
    while (has_capacity() && message.advert_count < adverts_per_message) {
        const auto advert = receiver.next_advert();
        if (!advert) break;
        message.adverts[message.advert_count++] = complete_advert(*advert);
    }
    if (message.acknowledged_bytes || !has_capacity()) return;
    message.acknowledged_bytes =
        message.advert_count > 0 ? receiver.next_early_ack() : receiver.next_ack();
}

} // namespace netio::stream::inline v0_3
