// SPDX-License-Identifier: Apache-2.0
#include "stream/core/sender.hpp"

#include "netio/base/check.hpp"

#include <algorithm>

namespace netio::stream::inline v0_3 {

Sender::Sender(const SenderOptions& options)
    : options_{options}, ring_{.begin = 0, .bytes = options.ring_bytes},
      excursion_bytes_{shortest_excursion_bytes() / 2} {
    validate(options);
    counters_.ring_bytes = ring_.bytes;
}

void Sender::submit(SendId id, std::uint64_t bytes) {
    NETIO_CHECK_MSG(!finishing_, "submit() after finish()");
    sends_.push_back(Send{id, submitted_, bytes});
    submitted_ += bytes;
    skip_finished_sends(); // R11
}

void Sender::finish() {
    NETIO_CHECK_MSG(!finishing_, "finish() twice");
    finishing_ = true;
}

ProtocolError Sender::on_advert(const Advert& advert) {
    if (error_ != ProtocolError::none) return error_;
    if (advert.terms.bytes == 0 || !advert.terms.phase.is_direct()) {
        return fail(ProtocolError::advert_malformed);
    }
    ++counters_.adverts_received;
    peer_receives_ = true;
    adverts_.push_back(advert);
    // A stale advert never becomes usable again, because S_s and P_s only grow. Dropping it at once
    // limits the queue to the peer's open adverts, even if nothing is sent for a long time.
    discard_stale_adverts();
    if (error_ == ProtocolError::none && adverts_.size() > options_.advert_limit_count) {
        return fail(ProtocolError::advert_limit); // R14
    }
    return error_;
}

ProtocolError Sender::on_ack(std::uint64_t total_bytes) {
    if (error_ != ProtocolError::none) return error_;
    if (total_bytes < ring_acked_ || total_bytes > ring_sent_) {
        return fail(ProtocolError::ack_out_of_range); // R14
    }
    peer_receives_ = total_bytes > ring_acked_; // otherwise it reports that it has no advert (P10)
    ring_acked_ = total_bytes;                  // R4, R10
    answered_ = true;                           // P10
    return error_;
}

// R15. When the new ring is known, there is no reason to wait until the old one is empty: the first
// transfer into the new ring shows the peer where the old one ends.
ProtocolError Sender::on_ring(std::uint64_t bytes) {
    if (error_ != ProtocolError::none) return error_;
    // R14: a larger ring answers a wait for space in the present ring. That is then the only one in
    // use, because such a wait ends when bytes of it are acknowledged.
    if (!ring_asked_ || bytes <= ring_.bytes) return fail(ProtocolError::ring_unexpected);
    old_ring_bytes_ = ring_.bytes;
    ring_ = {.begin = ring_sent_, .bytes = bytes};
    ring_is_new_ = true;
    ring_asked_ = false;
    if (wait_ == Wait::for_ring) wait_ = Wait::none; // the wait was for space in the old ring
    counters_.ring_bytes = bytes;
    ++counters_.ring_growths;
    return error_;
}

void Sender::on_transfer_done(std::uint64_t number) {
    NETIO_CHECK(number >= first_posted_ && number - first_posted_ < posted_.size());
    Posted& posted = posted_[static_cast<std::size_t>(number - first_posted_)];
    NETIO_CHECK_MSG(!posted.done, "a transfer finished twice");
    posted.done = true;
    backlog_bytes_ -= posted.bytes;
    while (!posted_.empty() && posted_.front().done) {
        done_ += posted_.pop_front().bytes;
        ++first_posted_;
    }
}

std::optional<Transfer> Sender::next_transfer(std::span<Piece> pieces, std::size_t joined_count) {
    NETIO_CHECK_MSG(!pieces.empty(), "a transfer has at least one piece");
    if (error_ != ProtocolError::none || unsent_ == sends_.size()) return std::nullopt;
    discard_stale_adverts(); // sending may have made some adverts stale
    if (error_ != ProtocolError::none) return std::nullopt;

    const bool ring_allowed = options_.mode != TransferMode::direct_only && has_ring_space();
    const bool direct = options_.mode != TransferMode::indirect_only && !adverts_.empty() &&
                        !(ring_allowed && prefers_ring());
    if (is_corked(pieces.size(), direct)) return std::nullopt;
    if (direct) return send_direct(pieces);
    if (!ring_allowed) {
        return wait(options_.mode == TransferMode::direct_only ? Wait::for_advert : Wait::for_ring);
    }
    if (expects_advert()) return wait(Wait::for_advert);
    if (waits_for_drain()) return wait(Wait::for_drain);
    return send_indirect(pieces, joined_count);
}

std::nullopt_t Sender::wait(Wait reason) {
    if (wait_ != reason) {
        wait_ = reason;
        ++(reason == Wait::for_ring     ? counters_.waits_for_ring
           : reason == Wait::for_advert ? counters_.waits_for_advert
                                        : counters_.waits_for_drain);
    }
    return std::nullopt;
}

std::optional<SendId> Sender::next_completion() {
    if (unsent_ == 0 || sends_.front().end() > done_) return std::nullopt;
    --unsent_;
    return sends_.pop_front().id;
}

std::optional<std::uint64_t> Sender::next_fin() {
    if (!finishing_ || fin_given_ || error_ != ProtocolError::none) return std::nullopt;
    if (next_ != submitted_) return std::nullopt; // R12
    fin_given_ = true;
    return submitted_.value();
}

ProtocolError Sender::fail(ProtocolError error) {
    error_ = error;
    return error_;
}

void Sender::skip_finished_sends() {
    while (unsent_ < sends_.size() && sends_[unsent_].end() <= next_)
        ++unsent_;
}

void Sender::discard_stale_adverts() {
    while (!adverts_.empty()) {
        const AdvertTerms& terms = adverts_.front().terms;
        const std::int32_t distance = terms.phase - phase_;
        if (phase_.is_direct()) {
            // Both sides are in step until the next indirect transfer, so it is usable.
            if (distance != 0) error_ = ProtocolError::advert_phase; // R14
            return;
        }
        // Adverts come in the order of their phases, every even phase has one, and a rejected
        // advert moves this side to the phase after it. So the distance is at most one phase.
        if (distance != 1 && distance != -1) {
            error_ = ProtocolError::advert_phase; // R14
            return;
        }
        if (distance > 0) {
            if (terms.sequence == next_) return; // R1
            if (terms.sequence > next_ || next_ - terms.sequence > ring_capacity_bytes()) {
                // R14: the first advert of a phase reports the delivered bytes; later bytes are in
                // the ring or in flight to it.
                error_ = terms.sequence > next_ ? ProtocolError::advert_ahead
                                                : ProtocolError::advert_behind;
                return;
            }
            ++counters_.adverts_rejected_by_sequence;
            phase_ = terms.phase.next(); // R2
        } else {
            ++counters_.adverts_rejected_by_phase;
        }
        adverts_.pop_front();
    }
}

// P4: all queued sends together fit into less than one gathered transfer, and a write is in flight;
// this function is called again when it ends.
bool Sender::is_corked(std::size_t piece_limit, bool direct) const {
    const std::uint64_t room =
        direct ? std::min(options_.coalesce_limit_bytes, adverts_.front().terms.bytes)
               : options_.coalesce_limit_bytes;
    return options_.cork && !finishing_ && backlog_bytes_ > 0 && queued_bytes() < room &&
           sends_.size() - unsent_ < piece_limit;
}

// P2
bool Sender::prefers_ring() const {
    return options_.mode == TransferMode::dynamic &&
           sends_[unsent_].bytes < options_.direct_threshold_bytes;
}

bool Sender::has_ring_space() const {
    const std::uint64_t free = ring_free_bytes();
    if (free == 0) return false; // R4
    // P3: the peer acknowledges at the latest when half of the ring is free (P6).
    const std::uint64_t left = sends_[unsent_].end() - next_;
    return !options_.avoid_slivers || free >= std::min(left, ring_.bytes / 8);
}

// P1: in a direct phase, the next advert is usable whenever it comes; after one indirect transfer
// it is not usable for a long time. So wait while the link has enough to do. If many bytes were
// sent directly since adverts were last short, wait also until the peer has answered the last of
// them: it sends an advert, or reports that it has none (P10). Short sends would not use an advert
// (P2).
bool Sender::expects_advert() {
    if (options_.mode != TransferMode::dynamic || !phase_.is_direct() || prefers_ring())
        return false;
    if (backlog_bytes_ > options_.backlog_limit_bytes) return true;
    patient_ = patient_ || burst_bytes_ >= options_.patience_threshold_bytes;
    burst_bytes_ = 0;
    return patient_ && !answered_;
}

// P8: an advert in an indirect phase is usable only if no bytes are in the ring or in flight to it
// (R1). A sender that always has bytes to send must pause to reach this state.
bool Sender::waits_for_drain() {
    if (!options_.drain || options_.mode != TransferMode::dynamic || phase_.is_direct() ||
        prefers_ring() || ring_sent_ - excursion_begin_ < excursion_bytes_) {
        return false;
    }
    // If the peer's user does not receive, no advert comes, so the ring is filled.
    if (!peer_receives_) return false;
    if (ring_sent_ - ring_acked_ >= prompt_ack_bytes(ring_.bytes)) return true;
    begin_excursion(); // the ring is empty, and there is still no advert
    return false;
}

// P8: the wait costs a round trip, so it must be worth it: unless the adverts carried as many bytes
// as the ring before them, the next wait comes after twice as many.
void Sender::begin_excursion() {
    constexpr std::uint64_t most = 4'096; // maximum factor, so that a change is noticed
    const std::uint64_t shortest = shortest_excursion_bytes();
    excursion_bytes_ = direct_run_bytes_ >= excursion_bytes_
                           ? shortest
                           : std::min(2 * excursion_bytes_, most * shortest);
    excursion_begin_ = ring_sent_;
    direct_run_bytes_ = 0;
}

// R6: called only when the kind of transfer changes.
void Sender::set_phase(Phase phase) {
    phase_ = phase;
    ++counters_.phase_switches;
}

Transfer Sender::send_direct(std::span<Piece> pieces) {
    Advert& advert = adverts_.front();
    if (!phase_.is_direct()) set_phase(advert.terms.phase); // R6
    Transfer transfer{.kind = TransferKind::direct, .address = advert.address, .key = advert.key};
    gather(advert.terms.bytes, pieces, 0, transfer);
    advert.address += transfer.bytes;
    advert.terms.bytes -= transfer.bytes;
    // R8: a plain receive completes with this transfer, however short; a wait-all one stays open.
    if (!advert.terms.wait_all || advert.terms.bytes == 0) adverts_.pop_front();
    ++counters_.direct_transfers;
    counters_.direct_bytes += transfer.bytes;
    direct_run_bytes_ += transfer.bytes;
    burst_bytes_ += transfer.bytes;
    patient_ = answered_ = false;
    return transfer;
}

Transfer Sender::send_indirect(std::span<Piece> pieces, std::size_t joined_count) {
    // R4: into free bytes, and never across the ring's end; the rest is the next transfer.
    const std::uint64_t offset = ring_.offset(ring_sent_);
    const std::uint64_t room =
        std::min({ring_free_bytes(), ring_.bytes - offset, options_.ring_transfer_limit_bytes});
    if (phase_.is_direct()) {
        set_phase(phase_.next()); // R6
        begin_excursion();
    }
    const RingNotice notice{.waited = options_.report_ring_waits && wait_ == Wait::for_ring,
                            .first = ring_is_new_};
    ring_asked_ = ring_asked_ || notice.waited;
    ring_is_new_ = false;
    Transfer transfer{.kind = TransferKind::indirect, .ring_offset = offset, .notice = notice};
    gather(room, pieces, joined_count, transfer);
    ring_sent_ += transfer.bytes;
    ++counters_.indirect_transfers;
    counters_.indirect_bytes += transfer.bytes;
    return transfer;
}

// Fills the transfer with the next bytes: as much as fits of the first send, then whole sends as
// long as the total stays short (P4) or the pieces are few.
void Sender::gather(std::uint64_t room, std::span<Piece> pieces, std::size_t joined_count,
                    Transfer& transfer) {
    room = std::min<std::uint64_t>(room, options_.longest_transfer_bytes);
    const Send& first = sends_[unsent_];
    std::uint64_t total = std::min(room, first.end() - next_);
    pieces[0] = Piece{first.id, next_ - first.begin, total};
    transfer.piece_count = 1;
    if (next_ + total == first.end()) {
        const std::uint64_t gathered = std::min(room, options_.coalesce_limit_bytes);
        for (std::size_t i = unsent_ + 1; i < sends_.size(); ++i) {
            const Send& send = sends_[i];
            if (send.bytes == 0) continue; // R11
            const std::uint64_t limit = transfer.piece_count < joined_count ? room : gathered;
            if (transfer.piece_count == pieces.size() || total + send.bytes > limit) break;
            pieces[transfer.piece_count++] = Piece{send.id, 0, send.bytes};
            total += send.bytes;
        }
    }
    wait_ = Wait::none;
    transfer.number = first_posted_ + posted_.size();
    transfer.sequence = next_;
    transfer.bytes = static_cast<std::uint32_t>(total);
    posted_.push_back(Posted{total, false});
    backlog_bytes_ += total;
    next_ += total;
    skip_finished_sends();
}

void Sender::check_invariants() const {
    NETIO_CHECK(done_ <= next_ && next_ <= submitted_);
    NETIO_CHECK(ring_acked_ <= ring_sent_ && ring_sent_ <= next_.value());
    NETIO_CHECK(ring_.begin <= ring_sent_ && ring_sent_ - ring_acked_ <= ring_capacity_bytes());
    NETIO_CHECK(ring_.used_bytes(ring_acked_, ring_sent_) <= ring_.bytes);
    NETIO_CHECK(!ring_asked_ || ring_acked_ >= ring_.begin);
    NETIO_CHECK(adverts_.size() <= options_.advert_limit_count || error_ != ProtocolError::none);
    NETIO_CHECK(unsent_ <= sends_.size());
    NETIO_CHECK(unsent_ == sends_.size()
                    ? next_ == submitted_
                    : (sends_[unsent_].begin <= next_ && next_ < sends_[unsent_].end()));
    NETIO_CHECK(posted_.empty() == (done_ == next_));
    NETIO_CHECK(counters_.direct_bytes + counters_.indirect_bytes == next_.value());
}

} // namespace netio::stream::inline v0_3
