// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sender: decides how the bytes of one direction of a stream travel.
//
// A pure state machine. Its inputs are the user's sends, the peer's adverts and acknowledgements,
// and finished writes; its output is the write to post next. It touches no memory, no clock and no
// network; sends are ids with lengths. One caller owns it; it is not thread-safe. A violation by
// the peer returns a ProtocolError, which is final; a mistake of the caller aborts.
//
//     stream::Sender sender{stream::improved_sender(ring_bytes)};
//     sender.submit(SendId{1}, 100'000);
//     std::array<netio::stream::Piece, 8> pieces;
//     while (const auto transfer = sender.next_transfer(pieces)) post(*transfer, pieces);
//     // for every write that finished:     sender.on_transfer_done(number);
//     // for every control message:         sender.on_advert(...), sender.on_ack(...);
//     // for every ring but the first:      sender.on_ring(...);
//     // and after each of these again:     next_transfer, next_completion, next_fin
//
// The phase (R6):
//
//                    indirect transfer
//      +-----------+ ----------------------> +-----------+
//      |  direct   |                         | indirect  | --+  stale advert of a later
//      | even P_s  | <---------------------- |  odd P_s  | <-+  phase: jump past it (R2)
//      +-----------+  advert of a later      +-----------+
//                     phase at S_s (R1)

#include "stream/core/counters.hpp"
#include "stream/core/fifo.hpp"
#include "stream/core/options.hpp"
#include "stream/core/protocol.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace netio::stream::inline v0_3 {

class Sender {
  public:
    // Throws std::invalid_argument (stream/core/options.hpp).
    explicit Sender(const SenderOptions& options);

    // A user's send; sends are transferred in the order of submission. A send of 0 bytes completes
    // in its turn without a transfer (R11). Must not be called after finish().
    void submit(SendId id, std::uint64_t bytes);

    // No more sends follow: when all bytes are sent, next_fin() returns the end of the stream
    // (R12). Called once.
    void finish();

    ProtocolError on_advert(const Advert& advert);
    // `total_bytes`: all ring bytes that the peer has copied out so far (R10).
    ProtocolError on_ack(std::uint64_t total_bytes);
    // The peer has created a larger ring of this size. All transfers that next_transfer returns
    // from now on are for the new ring (R15).
    ProtocolError on_ring(std::uint64_t bytes);
    // The write of transfer `number` is complete: its memory is not read any more.
    void on_transfer_done(std::uint64_t number);

    // The next write to post now, if any. Fills in the first piece_count elements of `pieces`,
    // which has space for at least one; with more space, more sends can be gathered (P4). Up to
    // `joined_count` pieces cost nothing, so in the ring they may be long as well. Call it until it
    // returns nullopt, and again after any other call.
    std::optional<Transfer> next_transfer(std::span<Piece> pieces, std::size_t joined_count = 0);

    // Sends whose last write is complete, in the order of submission.
    std::optional<SendId> next_completion();

    // The total bytes of the stream. Returned once; to be sent after all transfers on the same
    // connection (R12).
    std::optional<std::uint64_t> next_fin();
    bool has_given_fin() const noexcept { return fin_given_; }

    Sequence position() const noexcept { return next_; } // S_s
    Phase phase() const noexcept { return phase_; }      // P_s
    std::uint64_t ring_free_bytes() const noexcept {     // b_s
        return ring_.free_bytes(ring_acked_, ring_sent_);
    }
    std::uint64_t ring_acked_bytes() const noexcept { return ring_acked_; }
    // Whether so little of the ring is unacknowledged that the peer may acknowledge it only later
    // (P6).
    bool is_ring_read() const noexcept {
        return ring_sent_ - ring_acked_ < prompt_ack_bytes(ring_.bytes);
    }
    std::uint64_t queued_bytes() const noexcept { return submitted_ - next_; }
    std::uint64_t backlog_bytes() const noexcept { return backlog_bytes_; }
    std::size_t advert_count() const noexcept { return adverts_.size(); }
    ProtocolError error() const noexcept { return error_; }
    const SenderCounters& counters() const noexcept { return counters_; }

    // Aborts if the state is inconsistent.
    void check_invariants() const;

  private:
    friend struct Describe; // for tests/model: distinguishes states

    struct Send {
        SendId id;
        Sequence begin;
        std::uint64_t bytes;

        Sequence end() const { return begin + bytes; }
    };
    struct Posted {
        std::uint64_t bytes;
        bool done;
    };

    enum class Wait : std::uint8_t { none, for_ring, for_advert, for_drain };

    ProtocolError fail(ProtocolError error);
    std::nullopt_t wait(Wait reason);
    void skip_finished_sends();
    void discard_stale_adverts();
    bool is_corked(std::size_t piece_limit, bool direct) const;
    bool prefers_ring() const;
    bool has_ring_space() const;
    bool expects_advert();
    bool waits_for_drain();
    void begin_excursion();
    // Limit of the bytes in all rings together.
    std::uint64_t ring_capacity_bytes() const noexcept {
        return ring_.bytes + (ring_acked_ < ring_.begin ? old_ring_bytes_ : 0);
    }
    std::uint64_t shortest_excursion_bytes() const noexcept { // P8
        return std::max<std::uint64_t>(1, ring_.bytes / 4);
    }
    void set_phase(Phase phase);
    Transfer send_direct(std::span<Piece> pieces);
    Transfer send_indirect(std::span<Piece> pieces, std::size_t joined_count);
    void gather(std::uint64_t room, std::span<Piece> pieces, std::size_t joined_count,
                Transfer& transfer);

    SenderOptions options_;

    Sequence submitted_;     // end of the last send
    Sequence next_;          // S_s
    Sequence done_;          // all bytes before it are written and complete
    Phase phase_;            // P_s
    Fifo<Send> sends_;       // q_S; the first ones may be sent but not complete
    std::size_t unsent_ = 0; // first of sends_ with unsent bytes
    Fifo<Advert> adverts_;   // q_A
    RingSpan ring_;
    std::uint64_t ring_sent_ = 0;
    std::uint64_t ring_acked_ = 0;
    std::uint64_t old_ring_bytes_ = 0; // of the ring before
    bool ring_is_new_ = false;         // R15: nothing was sent into it yet
    bool ring_asked_ = false;          // P11: a wait was reported since the peer made this ring

    std::uint64_t burst_bytes_ = 0;      // P1: direct, since adverts were last short
    bool patient_ = false;               // P1
    bool answered_ = false;              // P10: since the last direct transfer
    std::uint64_t direct_run_bytes_ = 0; // P8: direct, since the last excursion into the ring
    std::uint64_t excursion_bytes_;      // P8: limit of this excursion
    std::uint64_t excursion_begin_ = 0;  // P8: ring_sent_ when it began
    bool peer_receives_ = false;         // P8: as an advert or a copied byte has shown

    Fifo<Posted> posted_;
    std::uint64_t first_posted_ = 0; // number of posted_'s front
    std::uint64_t backlog_bytes_ = 0;
    bool finishing_ = false;
    bool fin_given_ = false;
    ProtocolError error_ = ProtocolError::none;
    Wait wait_ = Wait::none; // since the last transfer
    SenderCounters counters_;
};

} // namespace netio::stream::inline v0_3
