// SPDX-License-Identifier: Apache-2.0
#pragma once

// The definitions of BasicReceiver. Included by receiver.cpp, which instantiates the product's
// Receiver, and by tests that inject flaws; everybody else includes stream/core/receiver.hpp.

#include "stream/core/receiver.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <utility>

namespace netio::stream::inline v0_2 {

template <class Flaws>
BasicReceiver<Flaws>::BasicReceiver(const ReceiverOptions& options, Flaws flaws)
    : options_{options}, flaws_{flaws}, ring_{.begin = 0, .bytes = options.ring_bytes} {
    validate(options);
    counters_.ring_bytes = ring_.bytes;
}

template <class Flaws>
void BasicReceiver<Flaws>::post(ReceiveId id, std::uint64_t bytes, bool wait_all) {
    receives_.push_back(Receive{id, bytes, 0, wait_all, false});
    complete_trivial();
}

template <class Flaws>
ProtocolError BasicReceiver<Flaws>::on_transfer(TransferKind kind, std::uint32_t bytes,
                                                RingNotice notice) {
    if (error_ != ProtocolError::none) return error_;
    if (ended_) return fail(ProtocolError::transfer_after_end);     // R12
    if (bytes == 0) return fail(ProtocolError::transfer_malformed); // R11
    return kind == TransferKind::direct ? on_direct(bytes) : on_indirect(bytes, notice);
}

template <class Flaws>
ProtocolError BasicReceiver<Flaws>::on_direct(std::uint32_t bytes) {
    // R8: it was written to the receive at the head of the queue, behind what that holds already.
    if ((!phase_.is_direct() && !flaws_.trust_peer) || ring_used_bytes() > 0 || receives_.empty() ||
        !receives_.front().advertised) {
        return fail(ProtocolError::direct_unexpected);
    }
    const Receive& front = receives_.front();
    if (bytes > front.bytes - front.filled) return fail(ProtocolError::direct_too_long);
    ++counters_.direct_transfers;
    counters_.direct_bytes += bytes;
    deliver(bytes);
    if (!front.wait_all || front.filled == front.bytes || flaws_.complete_wait_all_early) {
        complete_front(); // R9
        complete_trivial();
    }
    owes_answer_ = options_.report_no_advert && open_adverts_ == 0; // P10
    return error_;
}

template <class Flaws>
ProtocolError BasicReceiver<Flaws>::on_indirect(std::uint32_t bytes, RingNotice notice) {
    if (notice.first && !change_ring()) return fail(ProtocolError::ring_unexpected); // R14
    // R4. The write has happened already; at this point we can only stop believing the peer.
    if (ring_.bytes == 0 || bytes > ring_.free_bytes(ring_copied_, ring_received_) ||
        bytes > ring_.bytes_to_end(ring_received_)) {
        return fail(ProtocolError::ring_overrun);
    }
    if (notice.waited && ring_is_too_small()) { // P11
        wanted_ring_ = ring_.bytes > options_.ring_limit_bytes / 2 ? options_.ring_limit_bytes
                                                                   : 2 * ring_.bytes;
    }
    if (phase_.is_direct() && !flaws_.receiver_stays_direct) { // R6
        phase_ = phase_.next();
        ++counters_.phase_switches;
        if (options_.readvertise && !flaws_.revoke_nothing) revoke_adverts(); // R7
    }
    ring_received_ += bytes;
    last_indirect_bytes_ = bytes;
    owes_answer_ = false; // nobody waits any more
    ++counters_.indirect_transfers;
    counters_.indirect_bytes += bytes;
    return error_;
}

// P11: the sender saw a full ring when it had to wait, and when its next transfer comes, a round
// trip after the acknowledgement that let it go, nearly all of the ring was copied and
// acknowledged: so that is more than three quarters of it in a round trip. Had the user or the
// copying been the reason, most of it would be here still.
template <class Flaws>
bool BasicReceiver<Flaws>::ring_is_too_small() const {
    if (ring_refused_ || ring_.bytes >= options_.ring_limit_bytes) return false;
    // R15: two rings at most. A peer that keeps the rules does not wait before that.
    if (announced_ring_bytes_ > 0 || old_ring_ || unused_ring_) return false;
    return ring_received_ - ring_acked_ <= ring_.bytes / 4;
}

template <class Flaws>
void BasicReceiver<Flaws>::announce_ring() {
    NETIO_CHECK_MSG(wanted_ring_, "a ring that was not wanted");
    announced_ring_bytes_ = *std::exchange(wanted_ring_, std::nullopt);
    ++counters_.ring_growths;
    if (flaws_.change_at_announcement) static_cast<void>(change_ring());
}

template <class Flaws>
void BasicReceiver<Flaws>::refuse_ring() {
    NETIO_CHECK_MSG(wanted_ring_, "a ring that was not wanted");
    wanted_ring_.reset();
    ring_refused_ = true;
    ++counters_.ring_refusals;
}

// R15: the peer says with its first transfer into the new ring that it has left the old one, so no
// more writes come for that; what is in it is still to be copied.
template <class Flaws>
bool BasicReceiver<Flaws>::change_ring() {
    if (announced_ring_bytes_ == 0) return flaws_.change_at_announcement;
    old_ring_ = ring_;
    ring_ = {.begin = ring_received_, .bytes = std::exchange(announced_ring_bytes_, 0)};
    ++ring_number_;
    counters_.ring_bytes = ring_.bytes;
    if (flaws_.free_old_ring_early) unused_ring_ = ring_number_ - 1;
    leave_old_ring();
    return true;
}

template <class Flaws>
void BasicReceiver<Flaws>::leave_old_ring() {
    if (!old_ring_ || ring_copied_ < ring_.begin) return;
    old_ring_.reset();
    if (!flaws_.keep_old_ring) unused_ring_ = ring_number_ - 1;
}

template <class Flaws>
std::optional<std::uint32_t> BasicReceiver<Flaws>::next_unused_ring() {
    return std::exchange(unused_ring_, std::nullopt);
}

template <class Flaws>
ProtocolError BasicReceiver<Flaws>::on_fin(std::uint64_t total_bytes) {
    if (error_ != ProtocolError::none) return error_;
    if (ended_) return fail(ProtocolError::transfer_after_end);
    if (total_bytes != delivered_.value() + ring_used_bytes()) {
        return fail(ProtocolError::end_mismatch); // R12
    }
    ended_ = true;
    wanted_ring_.reset();
    complete_trivial();
    return error_;
}

template <class Flaws>
std::optional<LocalAdvert> BasicReceiver<Flaws>::next_advert() {
    // R11: a receive of 0 bytes waits for its turn and is never advertised.
    while (first_unadvertised_ < receives_.size() && receives_[first_unadvertised_].bytes == 0 &&
           !flaws_.advertise_empty) {
        ++first_unadvertised_;
    }
    std::size_t index = first_unadvertised_;
    if (flaws_.skip_unadvertised && index + 1 < receives_.size()) ++index;
    if (index >= receives_.size() || !may_advertise(receives_[index])) return std::nullopt;

    if (!phase_.is_direct()) { // R6
        phase_ = phase_.next();
        ++counters_.phase_switches;
        // R5: after a revocation the estimate counts from what was delivered.
        if (options_.readvertise) estimate_ = delivered_;
    }
    Receive& receive = receives_[index];
    const std::uint64_t open_bytes = receive.bytes - receive.filled;
    const LocalAdvert advert{
        .terms = {advert_sequence(), phase_, open_bytes, receive.wait_all},
        .id = receive.id,
        .offset = flaws_.advertise_from_start ? 0 : receive.filled, // R8
    };
    receive.advertised = true;
    owes_answer_ = false; // this is the answer
    first_unadvertised_ = index + 1;
    ++open_adverts_;
    estimate_ += receive.wait_all ? open_bytes : 1; // R5
    ++counters_.adverts;
    return advert;
}

template <class Flaws>
bool BasicReceiver<Flaws>::may_advertise(const Receive& receive) const {
    if (options_.mode == TransferMode::indirect_only || error_ != ProtocolError::none || ended_) {
        return false;
    }
    if (open_adverts_ >= options_.advert_limit_count) return false;                    // R14
    if (ring_used_bytes() > 0 && !flaws_.advertise_received_bytes) return false;       // R3, b_r
    if (!phase_.is_direct() && open_adverts_ > 0 && !flaws_.no_hold_off) return false; // R3, k_a
    // R3, k_b: the caller takes the first receive that is not advertised.
    const std::uint64_t threshold = options_.advert_threshold_bytes; // P7
    return receive.bytes - receive.filled >= threshold &&
           (phase_.is_direct() || last_indirect_bytes_ >= threshold);
}

// R5
template <class Flaws>
Sequence BasicReceiver<Flaws>::advert_sequence() const {
    if (flaws_.advertise_received_bytes) return delivered_ + ring_used_bytes();
    return options_.advert_number == AdvertNumber::exact ? delivered_ : estimate_;
}

template <class Flaws>
std::optional<Copy> BasicReceiver<Flaws>::next_copy(std::uint64_t limit_bytes) {
    NETIO_CHECK_MSG(limit_bytes > 0, "a copy step of 0 bytes");
    if (error_ != ProtocolError::none) return std::nullopt; // R14: the ring may be spoilt
    if (copying_bytes_ > 0 || ring_used_bytes() == 0 || receives_.empty()) return std::nullopt;
    const Receive& front = receives_.front();
    const RingSpan& ring = old_ring_ ? *old_ring_ : ring_;
    const std::uint64_t end = old_ring_ ? ring_.begin : ring_received_; // of what is in it
    copying_bytes_ = std::min({limit_bytes, end - ring_copied_, front.bytes - front.filled,
                               ring.bytes_to_end(ring_copied_)});
    return Copy{front.id, front.filled, old_ring_ ? ring_number_ - 1 : ring_number_,
                ring.offset(ring_copied_), copying_bytes_};
}

template <class Flaws>
void BasicReceiver<Flaws>::on_copied() {
    NETIO_CHECK_MSG(copying_bytes_ > 0, "on_copied() without a copy");
    const std::uint64_t bytes = std::exchange(copying_bytes_, 0);
    if (error_ != ProtocolError::none) return; // R14
    ring_copied_ += bytes;                     // R4, R10: only now is the space free
    leave_old_ring();
    deliver(bytes);
    const Receive& front = receives_.front();
    const bool enough =
        front.wait_all && !flaws_.complete_wait_all_early ? false : ring_used_bytes() == 0;
    if (enough || front.filled == front.bytes) complete_front(); // R9
    complete_trivial();
}

template <class Flaws>
std::optional<std::uint64_t> BasicReceiver<Flaws>::next_ack() {
    const std::uint64_t pending =
        flaws_.acknowledge_arrival ? ring_received_ - ring_acked_ : unacknowledged_bytes();
    const bool is_prompt =
        ring_used_bytes() == 0 && !flaws_.no_prompt_ack && pending >= prompt_ack_bytes(ring_.bytes);
    if (pending >= options_.ack_threshold_bytes || is_prompt) { // P6
        if (const auto total = next_early_ack()) return total;
    }
    if (!owes_answer_ || flaws_.no_answer || error_ != ProtocolError::none) return std::nullopt;
    owes_answer_ = false; // P10: the same total again says that there is no advert
    ++counters_.acks;
    return ring_acked_;
}

template <class Flaws>
std::optional<std::uint64_t> BasicReceiver<Flaws>::next_early_ack() {
    const std::uint64_t total = flaws_.acknowledge_arrival ? ring_received_ : ring_copied_; // R10
    if (total == ring_acked_ || flaws_.never_acknowledge || error_ != ProtocolError::none) {
        return std::nullopt;
    }
    ring_acked_ = total;
    owes_answer_ = false; // P10
    ++counters_.acks;
    return total;
}

template <class Flaws>
std::optional<ReceiveCompletion> BasicReceiver<Flaws>::next_completion() {
    if (completions_.empty()) return std::nullopt;
    return completions_.pop_front();
}

template <class Flaws>
ProtocolError BasicReceiver<Flaws>::fail(ProtocolError error) {
    error_ = error;
    wanted_ring_.reset();
    return error_;
}

// The next `bytes` of the stream are in the front receive. R5: an advertised wait-all receive was
// counted in full, an advertised plain one as 1 byte, one that was never advertised not at all.
template <class Flaws>
void BasicReceiver<Flaws>::deliver(std::uint64_t bytes) {
    Receive& front = receives_.front();
    delivered_ += bytes;
    front.filled += bytes;
    if (front.advertised ? !front.wait_all : !flaws_.literal_estimate) estimate_ += bytes;
}

template <class Flaws>
void BasicReceiver<Flaws>::complete_front() {
    const Receive front = receives_.pop_front();
    if (first_unadvertised_ > 0) --first_unadvertised_;
    if (front.advertised) {
        --open_adverts_;
        // R5: take back the byte that the advert counted.
        if (!front.wait_all && front.filled > 0) estimate_ = Sequence{estimate_.value() - 1};
    }
    completions_.push_back(ReceiveCompletion{front.id, front.filled, is_finished()});
}

// Receives that need nothing more once they are at the front: empty ones (R11), and all of them
// after the end (R12).
template <class Flaws>
void BasicReceiver<Flaws>::complete_trivial() {
    while (!receives_.empty() && (receives_.front().bytes == 0 || is_finished()))
        complete_front();
}

// R7: whoever wrote for these adverts did so before the indirect transfer that has just arrived,
// and the sender rejects them from then on. So no more writes come for them.
template <class Flaws>
void BasicReceiver<Flaws>::revoke_adverts() {
    for (std::size_t i = 0; i < first_unadvertised_; ++i)
        receives_[i].advertised = false;
    counters_.adverts_revoked += open_adverts_;
    first_unadvertised_ = 0;
    open_adverts_ = 0;
}

template <class Flaws>
void BasicReceiver<Flaws>::check_invariants() const {
    NETIO_CHECK(ring_acked_ <= ring_copied_ || flaws_.acknowledge_arrival);
    NETIO_CHECK(ring_copied_ <= ring_received_);
    NETIO_CHECK(ring_.begin <= ring_received_);
    NETIO_CHECK(ring_.used_bytes(ring_copied_, ring_received_) <= ring_.bytes);
    NETIO_CHECK(old_ring_ ? ring_copied_ < ring_.begin : ring_copied_ >= ring_.begin);
    NETIO_CHECK(copying_bytes_ <= ring_used_bytes());
    NETIO_CHECK(first_unadvertised_ <= receives_.size());
    std::size_t advertised = 0;
    for (std::size_t i = 0; i < receives_.size(); ++i) {
        const Receive& receive = receives_[i];
        NETIO_CHECK(receive.filled < receive.bytes || receive.bytes == 0);
        NETIO_CHECK(i == 0 || receive.filled == 0);
        NETIO_CHECK(!receive.advertised || i < first_unadvertised_);
        advertised += receive.advertised ? 1 : 0;
    }
    NETIO_CHECK(advertised == open_adverts_);
    NETIO_CHECK(open_adverts_ <= options_.advert_limit_count);
}

} // namespace netio::stream::inline v0_2
