// SPDX-License-Identifier: Apache-2.0
#include "stream/core/receiver.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <utility>

namespace netio::stream::inline v0_3 {

Receiver::Receiver(const ReceiverOptions& options)
    : options_{options}, ring_{.begin = 0, .bytes = options.ring_bytes} {
    validate(options);
    counters_.ring_bytes = ring_.bytes;
}

void Receiver::post(ReceiveId id, std::uint64_t bytes, bool wait_all) {
    receives_.push_back(Receive{id, bytes, 0, wait_all, false});
    complete_trivial();
}

ProtocolError Receiver::on_transfer(TransferKind kind, std::uint32_t bytes, RingNotice notice) {
    return take({.kind = kind, .ring = notice}, bytes);
}

ProtocolError Receiver::on_frame(const FrameNotice& notice, std::uint32_t bytes, Place& place) {
    // R16: after the bytes that the receive, or the ring, contains already.
    if (!receives_.empty())
        place = {.id = receives_.front().id, .offset = receives_.front().filled};
    const ProtocolError error = take(notice, bytes);
    if (error == ProtocolError::none && notice.kind == TransferKind::indirect) {
        place = {.ring = ring_number_, .offset = ring_.offset(ring_received_ - bytes)};
    }
    return error;
}

ProtocolError Receiver::take(const FrameNotice& notice, std::uint32_t bytes) {
    if (error_ != ProtocolError::none) return error_;
    if (ended_) return fail(ProtocolError::transfer_after_end);     // R12
    if (bytes == 0) return fail(ProtocolError::transfer_malformed); // R11
    return notice.kind == TransferKind::direct ? on_direct(bytes, notice.more)
                                               : on_indirect(bytes, notice.ring);
}

ProtocolError Receiver::on_direct(std::uint32_t bytes, bool more) {
    // R8: it was written to the receive at the head of the queue, after the bytes that this
    // contains already.
    if (!phase_.is_direct() || ring_used_bytes() > 0 || receives_.empty() ||
        !receives_.front().advertised) {
        return fail(ProtocolError::direct_unexpected);
    }
    const Receive& front = receives_.front();
    if (bytes > front.bytes - front.filled) return fail(ProtocolError::direct_too_long);
    counters_.direct_bytes += bytes;
    deliver(bytes);
    if (more && front.filled < front.bytes) return error_; // R16
    ++counters_.direct_transfers;
    if (!front.wait_all || front.filled == front.bytes) {
        complete_front(); // R9
        complete_trivial();
    }
    owes_answer_ = options_.report_no_advert && open_adverts_ == 0; // P10
    return error_;
}

ProtocolError Receiver::on_indirect(std::uint32_t bytes, RingNotice notice) {
    if (notice.first && !change_ring()) return fail(ProtocolError::ring_unexpected); // R14
    // R4. The write has happened already; the only possible reaction is to end the connection.
    if (ring_.bytes == 0 || bytes > ring_.free_bytes(ring_copied_, ring_received_) ||
        bytes > ring_.bytes_to_end(ring_received_)) {
        return fail(ProtocolError::ring_overrun);
    }
    if (notice.waited && ring_is_too_small()) { // P11
        wanted_ring_ = ring_.bytes > options_.ring_limit_bytes / 2 ? options_.ring_limit_bytes
                                                                   : 2 * ring_.bytes;
    }
    if (phase_.is_direct()) { // R6
        phase_ = phase_.next();
        ++counters_.phase_switches;
        if (options_.readvertise) revoke_adverts(); // R7
    }
    ring_received_ += bytes;
    last_indirect_bytes_ = bytes;
    owes_answer_ = false; // the peer does not wait any more
    ++counters_.indirect_transfers;
    counters_.indirect_bytes += bytes;
    return error_;
}

// P11: when the sender had to wait, the ring was full. Its next transfer comes one round trip after
// the acknowledgement that ended the wait. If nearly all of the ring was copied and acknowledged by
// then, more than three quarters of it pass in one round trip. If the user or the copying were the
// reason, most of the bytes would still be here.
bool Receiver::ring_is_too_small() const {
    if (ring_refused_ || ring_.bytes >= options_.ring_limit_bytes) return false;
    // R15: two rings at most. A peer that follows the rules does not wait before that.
    if (announced_ring_bytes_ > 0 || old_ring_ || unused_ring_) return false;
    return ring_received_ - ring_acked_ <= ring_.bytes / 4;
}

void Receiver::announce_ring() {
    NETIO_CHECK_MSG(wanted_ring_, "a ring that was not wanted");
    announced_ring_bytes_ = *std::exchange(wanted_ring_, std::nullopt);
    ++counters_.ring_growths;
}

void Receiver::refuse_ring() {
    NETIO_CHECK_MSG(wanted_ring_, "a ring that was not wanted");
    wanted_ring_.reset();
    ring_refused_ = true;
    ++counters_.ring_refusals;
}

// R15: with its first transfer into the new ring, the peer announces that it does not use the old
// one any more. No more writes come for the old ring; bytes in it are still to be copied.
bool Receiver::change_ring() {
    if (announced_ring_bytes_ == 0) return false;
    old_ring_ = ring_;
    ring_ = {.begin = ring_received_, .bytes = std::exchange(announced_ring_bytes_, 0)};
    ++ring_number_;
    counters_.ring_bytes = ring_.bytes;
    leave_old_ring();
    return true;
}

void Receiver::leave_old_ring() {
    if (!old_ring_ || ring_copied_ < ring_.begin) return;
    old_ring_.reset();
    unused_ring_ = ring_number_ - 1;
}

std::optional<std::uint32_t> Receiver::next_unused_ring() {
    return std::exchange(unused_ring_, std::nullopt);
}

ProtocolError Receiver::on_fin(std::uint64_t total_bytes) {
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

std::optional<LocalAdvert> Receiver::next_advert() {
    // R11: a receive of 0 bytes waits for its turn and is never advertised.
    while (first_unadvertised_ < receives_.size() && receives_[first_unadvertised_].bytes == 0) {
        ++first_unadvertised_;
    }
    const std::size_t index = first_unadvertised_;
    if (index >= receives_.size() || !may_advertise(receives_[index])) return std::nullopt;

    if (!phase_.is_direct()) { // R6
        phase_ = phase_.next();
        ++counters_.phase_switches;
        // R5: after a revocation, the estimate counts from the delivered bytes.
        if (options_.readvertise) estimate_ = delivered_;
    }
    Receive& receive = receives_[index];
    const std::uint64_t open_bytes = receive.bytes - receive.filled;
    const LocalAdvert advert{
        .terms = {advert_sequence(), phase_, open_bytes, receive.wait_all},
        .id = receive.id,
        .offset = receive.filled, // R8
    };
    receive.advertised = true;
    owes_answer_ = false; // this is the answer
    first_unadvertised_ = index + 1;
    ++open_adverts_;
    estimate_ += receive.wait_all ? open_bytes : 1; // R5
    ++counters_.adverts;
    return advert;
}

bool Receiver::may_advertise(const Receive& receive) const {
    if (options_.mode == TransferMode::indirect_only || error_ != ProtocolError::none || ended_) {
        return false;
    }
    if (open_adverts_ >= options_.advert_limit_count) return false; // R14
    if (ring_used_bytes() > 0) return false;                        // R3, b_r
    if (!phase_.is_direct() && open_adverts_ > 0) return false;     // R3, k_a
    // R3, k_b: the caller takes the first receive that is not advertised.
    const std::uint64_t threshold = options_.advert_threshold_bytes; // P7
    return receive.bytes - receive.filled >= threshold &&
           (phase_.is_direct() || last_indirect_bytes_ >= threshold);
}

// R5
Sequence Receiver::advert_sequence() const {
    return options_.advert_number == AdvertNumber::exact ? delivered_ : estimate_;
}

std::optional<Copy> Receiver::next_copy(std::uint64_t limit_bytes) {
    NETIO_CHECK_MSG(limit_bytes > 0, "a copy step of 0 bytes");
    if (error_ != ProtocolError::none) return std::nullopt; // R14: its bytes may be invalid
    if (copying_bytes_ > 0 || ring_used_bytes() == 0 || receives_.empty()) return std::nullopt;
    const Receive& front = receives_.front();
    const RingSpan& ring = old_ring_ ? *old_ring_ : ring_;
    const std::uint64_t end = old_ring_ ? ring_.begin : ring_received_; // of the bytes in it
    copying_bytes_ = std::min({limit_bytes, end - ring_copied_, front.bytes - front.filled,
                               ring.bytes_to_end(ring_copied_)});
    return Copy{front.id, front.filled, old_ring_ ? ring_number_ - 1 : ring_number_,
                ring.offset(ring_copied_), copying_bytes_};
}

void Receiver::on_copied() {
    NETIO_CHECK_MSG(copying_bytes_ > 0, "on_copied() without a copy");
    const std::uint64_t bytes = std::exchange(copying_bytes_, 0);
    if (error_ != ProtocolError::none) return; // R14
    ring_copied_ += bytes;                     // R4, R10: only now is the space free
    leave_old_ring();
    deliver(bytes);
    const Receive& front = receives_.front();
    const bool is_enough = !front.wait_all && ring_used_bytes() == 0;
    if (is_enough || front.filled == front.bytes) complete_front(); // R9
    complete_trivial();
}

std::optional<RingPart> Receiver::peek() const {
    if (error_ != ProtocolError::none) return std::nullopt; // R14: its bytes may be invalid
    if (ring_used_bytes() == 0 || !receives_.empty()) return std::nullopt;
    const RingSpan& ring = old_ring_ ? *old_ring_ : ring_;
    const std::uint64_t end = old_ring_ ? ring_.begin : ring_received_; // of the bytes in it
    return RingPart{.ring = old_ring_ ? ring_number_ - 1 : ring_number_,
                    .offset = ring.offset(ring_copied_),
                    .bytes = std::min(end - ring_copied_, ring.bytes_to_end(ring_copied_))};
}

void Receiver::consume(std::uint64_t bytes) {
    const auto part = peek();
    NETIO_CHECK_MSG(bytes == 0 || (part && bytes <= part->bytes),
                    "consume() of more bytes than peek() has returned");
    if (bytes == 0) return;
    ring_copied_ += bytes; // R4, R10
    delivered_ += bytes;
    estimate_ += bytes; // R5: as for a receive that was never advertised
    leave_old_ring();
}

std::optional<std::uint64_t> Receiver::next_ack() {
    const std::uint64_t pending = unacknowledged_bytes();
    const bool is_prompt = ring_used_bytes() == 0 && pending >= prompt_ack_bytes(ring_.bytes);
    if (pending >= options_.ack_threshold_bytes || is_prompt) { // P6
        if (const auto total = next_early_ack()) return total;
    }
    if (!owes_answer_ || error_ != ProtocolError::none) return std::nullopt;
    owes_answer_ = false; // P10: the same total again means that no advert follows
    ++counters_.acks;
    return ring_acked_;
}

std::optional<std::uint64_t> Receiver::next_early_ack() {
    if (ring_copied_ == ring_acked_ || error_ != ProtocolError::none) return std::nullopt;
    ring_acked_ = ring_copied_; // R10
    owes_answer_ = false;       // P10
    ++counters_.acks;
    return ring_acked_;
}

std::optional<ReceiveCompletion> Receiver::next_completion() {
    if (completions_.empty()) return std::nullopt;
    return completions_.pop_front();
}

ProtocolError Receiver::fail(ProtocolError error) {
    error_ = error;
    wanted_ring_.reset();
    return error_;
}

// The next `bytes` of the stream are in the front receive. R5: an advertised wait-all receive was
// counted in full, an advertised plain one as 1 byte, and one that was never advertised not at all.
void Receiver::deliver(std::uint64_t bytes) {
    Receive& front = receives_.front();
    delivered_ += bytes;
    front.filled += bytes;
    if (!front.advertised || !front.wait_all) estimate_ += bytes;
}

void Receiver::complete_front() {
    const Receive front = receives_.pop_front();
    if (first_unadvertised_ > 0) --first_unadvertised_;
    if (front.advertised) {
        --open_adverts_;
        // R5: removes the byte that the advert counted.
        if (!front.wait_all && front.filled > 0) estimate_ = Sequence{estimate_.value() - 1};
    }
    completions_.push_back(ReceiveCompletion{front.id, front.filled, is_finished()});
}

// Completes receives that need no more bytes when they are at the front: empty ones (R11), and all
// of them after the end (R12).
void Receiver::complete_trivial() {
    while (!receives_.empty() && (receives_.front().bytes == 0 || is_finished()))
        complete_front();
}

// R7: writes for these adverts were posted before the indirect transfer that has just arrived, and
// the sender rejects the adverts from then on. So no more writes come for them.
void Receiver::revoke_adverts() {
    for (std::size_t i = 0; i < first_unadvertised_; ++i)
        receives_[i].advertised = false;
    counters_.adverts_revoked += open_adverts_;
    first_unadvertised_ = 0;
    open_adverts_ = 0;
}

void Receiver::check_invariants() const {
    NETIO_CHECK(ring_acked_ <= ring_copied_);
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

} // namespace netio::stream::inline v0_3
