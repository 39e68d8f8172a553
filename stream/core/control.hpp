// SPDX-License-Identifier: Apache-2.0
#pragma once

// collect_control: puts what a receiver has to tell its peer into one control message (P5).
//
// A late acknowledgement costs nothing, but an early one lets a waiting sender fill the ring at
// once, which makes the adverts behind it stale. So adverts go first, and acknowledgements that are
// not due yet ride along. The published order and one item per message are a switch.

#include "stream/core/receiver.hpp"
#include "stream/core/wire.hpp"

#include <algorithm>
#include <cstddef>

namespace netio::stream::inline v0_2 {

// Adds to `message` until it is full or nothing is left to tell. `complete_advert(LocalAdvert)`
// gives the Advert with the address and key of the memory. Send the message only if it has items:
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

} // namespace netio::stream::inline v0_2
