// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describe passes every number that determines the behaviour of a Sender or a Receiver to a sink,
// for checkers that compare states. It also lets both begin in a state that a stream reaches only
// after 2^32 changes between direct and indirect.

#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"

#include <algorithm>

namespace netio::stream::inline v0_3 {

struct Describe {
    // An even phase for a new sender or receiver, as after that number of changes.
    template <class SenderOrReceiver>
    static void begin_at(SenderOrReceiver& one, Phase phase) {
        one.phase_ = phase;
    }

    template <class Sink>
    static void state(const Sender& sender, Sink&& sink) {
        sink(sender.submitted_.value());
        sink(sender.next_.value());
        sink(sender.done_.value());
        sink(sender.phase_.value());
        sink(sender.ring_sent_);
        sink(sender.ring_acked_);
        sink(sender.ring_.bytes);
        sink(sender.ring_.begin);
        if (sender.options_.report_ring_waits) {
            sink((sender.ring_is_new_ ? 4U : 0U) | (sender.ring_asked_ ? 2U : 0U) |
                 (sender.wait_ == Sender::Wait::for_ring ? 1U : 0U));
        }
        if (sender.options_.drain) {
            sink(sender.excursion_bytes_);
            sink(sender.ring_sent_ - sender.excursion_begin_);
            sink(std::min(sender.direct_run_bytes_, sender.excursion_bytes_) << 1U |
                 (sender.peer_receives_ ? 1U : 0U));
        }
        if (sender.options_.patience_threshold_bytes != unlimited_bytes) {
            sink(std::min(sender.burst_bytes_, sender.options_.patience_threshold_bytes) << 2U |
                 (sender.patient_ ? 2U : 0U) | (sender.answered_ ? 1U : 0U));
        }
        sink(sender.sends_.size() << 2U | (sender.finishing_ ? 2U : 0U) |
             (sender.fin_given_ ? 1U : 0U));
        for (std::size_t i = 0; i < sender.sends_.size(); ++i)
            sink(sender.sends_[i].bytes);
        sink(sender.adverts_.size());
        for (std::size_t i = 0; i < sender.adverts_.size(); ++i) {
            const Advert& advert = sender.adverts_[i];
            sink(advert.terms.sequence.value());
            sink(advert.terms.phase.value());
            sink(advert.terms.bytes << 1U | (advert.terms.wait_all ? 1U : 0U));
            sink(advert.address);
        }
        sink(sender.posted_.size());
        for (std::size_t i = 0; i < sender.posted_.size(); ++i) {
            sink(sender.posted_[i].bytes << 1U | (sender.posted_[i].done ? 1U : 0U));
        }
    }

    template <class Sink>
    static void state(const Receiver& receiver, Sink&& sink) {
        sink(receiver.delivered_.value());
        sink(receiver.options_.advert_number == AdvertNumber::estimated ? receiver.estimate_.value()
                                                                        : 0);
        sink(receiver.phase_.value());
        sink(receiver.receives_.size());
        for (std::size_t i = 0; i < receiver.receives_.size(); ++i) {
            const Receiver::Receive& one = receiver.receives_[i];
            sink(one.bytes << 2U | (one.wait_all ? 2U : 0U) | (one.advertised ? 1U : 0U));
            sink(one.filled);
        }
        sink(receiver.first_unadvertised_);
        sink(receiver.open_adverts_);
        sink(receiver.completions_.size());
        sink(receiver.ring_.begin);
        sink(receiver.ring_.bytes);
        sink(receiver.old_ring_ ? receiver.old_ring_->begin + 1 : 0);
        sink(receiver.unused_ring_ ? *receiver.unused_ring_ + 1 : 0);
        sink(receiver.announced_ring_bytes_);
        sink(receiver.wanted_ring_.value_or(0) << 1U | (receiver.ring_refused_ ? 1U : 0U));
        sink(receiver.ring_received_);
        sink(receiver.ring_copied_);
        sink(receiver.ring_acked_);
        sink(receiver.copying_bytes_);
        sink(receiver.last_indirect_bytes_ >= receiver.options_.advert_threshold_bytes ? 1U : 0U);
        sink((receiver.ended_ ? 2U : 0U) | (receiver.owes_answer_ ? 1U : 0U));
    }
};

} // namespace netio::stream::inline v0_3
