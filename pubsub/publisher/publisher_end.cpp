// SPDX-License-Identifier: Apache-2.0

// The orderly end of a publisher: every subscriber gets what is still due to it, then the number of
// messages that were published to it per fid, and answers that it has them.

#include "pubsub/publisher/subscriber_links.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace netio::pubsub::inline v0_2 {

void SubscriberLinks::close() {
    if (closing_) return;
    closing_ = true;
    close_limit_ = loop_.now() + options_.close_limit;
    for (const auto& [id, subscriber] : subscribers_) {
        subscriber->moving = true;
        if (subscriber->announced && !subscriber->leaving) send_totals(*subscriber);
    }
    close_timer_.start(options_.close_timeout);
    check_closed();
}

void SubscriberLinks::abort() {
    closing_ = aborted_ = true;
    for (const auto& [id, subscriber] : subscribers_)
        subscriber->session().abort();
    check_closed();
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
    if (subscriber.has_drained()) subscriber.session().close();
}

// Whoever has not moved since the timer was started last is cut off, and everybody at the limit.
void SubscriberLinks::end_the_stuck() {
    const bool limit = loop_.now() >= close_limit_;
    for (const auto& [id, subscriber] : subscribers_) {
        if (limit || !subscriber->moving) {
            subscriber->session().fail(CloseReason::too_slow,
                                       subscriber->peer_address() +
                                           (limit
                                                ? " did not take everything within close_limit"
                                                : " took nothing while the publisher was ending"));
        }
        subscriber->moving = false;
    }
    close_timer_.start_at(std::min(loop_.now() + options_.close_timeout, close_limit_));
}

void SubscriberLinks::check_closed() {
    if (!closing_ || !subscribers_.empty()) return;
    close_timer_.cancel();
    if (!closed_timer_.armed()) closed_timer_.start(Duration::zero());
}

void SubscriberLinks::tell_closed() {
    Closed closed{.reason = CloseReason::orderly, .detail = {}};
    if (unconfirmed_ > 0) {
        closed = {.reason = CloseReason::unconfirmed,
                  .detail = std::to_string(unconfirmed_) +
                            " subscriber(s) did not confirm that they have everything"};
    }
    if (aborted_) closed.reason = CloseReason::local;
    handler_.on_closed(publisher_, closed);
}

} // namespace netio::pubsub::inline v0_2
