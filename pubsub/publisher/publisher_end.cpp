// SPDX-License-Identifier: Apache-2.0

// The orderly end of a publisher: every subscriber gets what is still due to it, then the number of
// messages that were published to it per fid, and answers that it has them.

#include "pubsub/publisher/subscriber_links.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace netio::pubsub::inline v0_2 {

void SubscriberLinks::finish() {
    if (finishing_) return;
    finishing_ = true;
    for (const auto& [id, subscriber] : subscribers_) {
        subscriber->moving = true;
        if (subscriber->announced && !subscriber->leaving) send_totals(*subscriber);
    }
    finish_timer_.start(options_.finish_timeout);
    check_finished();
}

void SubscriberLinks::send_totals(Subscriber& subscriber) {
    std::vector<FidCount> totals;
    fids_.for_each([&](Fid fid, const FidState& state) {
        if (state.published == 0 || !table_.wants(subscriber.id(), fid)) return;
        const std::uint64_t* before = subscriber.published_before.find(fid);
        totals.push_back({.fid = fid, .count = state.published - (before ? *before : 0)});
    });
    std::ranges::sort(totals, {}, &FidCount::fid);
    subscriber.send_gaps();
    subscriber.totals_sent = true;
    std::array<std::byte, 4096> body;
    const std::size_t limit =
        std::min(body.size(), subscriber.session().body_limit()) / fid_count_bytes;
    std::span<const FidCount> left{totals};
    do {
        const auto part = left.first(std::min(limit, left.size()));
        left = left.subspan(part.size());
        const std::size_t bytes = encode(part, body);
        subscriber.send_answer(totals_kind, left.empty() ? std::uint8_t{0} : more_flag,
                               std::span{body}.first(bytes));
    } while (!left.empty());
}

void SubscriberLinks::leave_when_drained(Subscriber& subscriber) {
    if (subscriber.has_drained()) subscriber.session().finish();
}

// Whoever has not moved since the timer was started last is cut off.
void SubscriberLinks::end_the_stuck() {
    for (const auto& [id, subscriber] : subscribers_) {
        if (!subscriber->moving) {
            subscriber->session().fail(CloseReason::too_slow,
                                       subscriber->peer_address() +
                                           " took nothing while the publisher was ending");
        }
        subscriber->moving = false;
    }
    finish_timer_.start(options_.finish_timeout);
}

void SubscriberLinks::check_finished() {
    if (!finishing_ || !subscribers_.empty()) return;
    finish_timer_.cancel();
    finished_timer_.start(Duration::zero());
}

} // namespace netio::pubsub::inline v0_2
