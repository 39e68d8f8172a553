// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/subscription_book.hpp"

#include "netio/base/check.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_2 {

void SubscriptionBook::subscribe(std::span<const FidRange> ranges, Policy policy) {
    if (ranges_per_request_ > 0) return ask(true, ranges, policy);
    for (const FidRange& range : ranges)
        wanted_.assign(range, {.policy = policy, .request = 0});
}

void SubscriptionBook::unsubscribe(const FidRange& range) {
    if (ranges_per_request_ > 0) return ask(false, {&range, 1}, {});
    wanted_.erase(range);
}

void SubscriptionBook::ask(bool subscribe, std::span<const FidRange> ranges, Policy policy) {
    while (!ranges.empty()) {
        const auto part = ranges.first(std::min(ranges_per_request_, ranges.size()));
        ranges = ranges.subspan(part.size());
        Pending pending{.request = {.number = ++last_request_,
                                    .subscribe = subscribe,
                                    .policy = policy,
                                    .ranges = {part.begin(), part.end()}},
                        .before = {}};
        for (const FidRange& range : part) {
            std::ranges::move(look_at(wanted_, range), std::back_inserter(pending.before));
            if (subscribe) {
                wanted_.assign(range, {.policy = policy, .request = pending.request.number});
            } else {
                wanted_.erase(range);
            }
        }
        unsent_.push_back(std::move(pending));
    }
}

void SubscriptionBook::begin(std::size_t ranges_per_request) {
    NETIO_CHECK(ranges_per_request > 0);
    end();
    ranges_per_request_ = ranges_per_request;
    std::map<Policy, std::vector<FidRange>> by_policy;
    steps_ += wanted_.size();
    wanted_.for_each(
        [&](const FidRange& range, const Wish& wish) { by_policy[wish.policy].push_back(range); });
    for (const auto& [policy, ranges] : by_policy)
        ask(true, normalised(ranges), policy);
    for (Pending& pending : unsent_)
        pending.before.clear(); // nothing of it was granted here
}

void SubscriptionBook::end() {
    granted_.clear();
    unsent_.clear();
    asked_.clear();
    ranges_per_request_ = 0;
}

void SubscriptionBook::sent() {
    const std::uint32_t number = unsent_.front().request.number;
    asked_.emplace(number, std::move(unsent_.front()));
    unsent_.pop_front();
}

std::optional<SubscriptionBook::Request>
SubscriptionBook::answered(const SubscriptionAnswer& answer) {
    auto node = asked_.extract(answer.request);
    if (node.empty()) return std::nullopt;
    Pending& pending = node.mapped();
    if (answer.result == SubscriptionResult::not_permitted && pending.request.ranges.size() > 1) {
        ask_one_by_one(pending);
        pending.request.ranges.clear();
        return std::move(pending.request);
    }
    if (answer.result != SubscriptionResult::accepted) {
        refuse(pending);
        return std::move(pending.request);
    }
    for (const FidRange& range : pending.request.ranges) {
        if (pending.request.subscribe) {
            granted_.assign(range, {});
            continue;
        }
        granted_.erase(range);
        // An earlier request to the same effect may have been refused meanwhile.
        for (const Wishes::Piece& piece : look_at(wanted_, range))
            if (piece.value.request < pending.request.number) wanted_.erase(piece.range);
    }
    settle(pending.request);
    return std::move(pending.request);
}

// A wish that nothing is asked for any more needs no number, and so becomes one with its
// neighbours. Not where an earlier request waits yet: its answer would not be told from a later
// wish.
void SubscriptionBook::settle(const Request& request) {
    if (!request.subscribe) return;
    if (!asked_.empty() && asked_.begin()->first < request.number) return;
    for (const FidRange& range : request.ranges) {
        for (const Wishes::Piece& piece : look_at(wanted_, range)) {
            if (piece.value.request == request.number)
                wanted_.assign(piece.range, {.policy = piece.value.policy, .request = 0});
        }
    }
}

const SubscriptionBook::Request* SubscriptionBook::awaited(std::uint32_t number) const {
    const auto found = asked_.find(number);
    if (found == asked_.end() || !found->second.request.subscribe) return nullptr;
    return &found->second.request;
}

// What is granted stays granted, so it is wanted as it was before. Later requests about the same
// fids stand.
void SubscriptionBook::refuse(const Pending& pending) {
    FidRangeMap<std::monostate> open; // what the request has decided
    for (const FidRange& range : pending.request.ranges) {
        if (!pending.request.subscribe) {
            for (const FidRange& absent : wanted_.absent(range))
                open.assign(absent, {});
            continue;
        }
        for (const Wishes::Piece& piece : look_at(wanted_, range)) {
            if (piece.value.request != pending.request.number) continue;
            wanted_.erase(piece.range);
            open.assign(piece.range, {});
        }
    }
    for (const Wishes::Piece& former : pending.before)
        for (const auto& part : look_at(open, former.range))
            for (const auto& granted : look_at(granted_, part.range))
                wanted_.assign(granted.range, former.value);
}

void SubscriptionBook::ask_one_by_one(const Pending& pending) {
    std::vector<FidRange> open; // what no later request was about
    for (const FidRange& range : pending.request.ranges) {
        for (const Wishes::Piece& piece : look_at(wanted_, range))
            if (piece.value.request == pending.request.number) open.push_back(piece.range);
    }
    refuse(pending);
    for (const FidRange& range : open)
        ask(pending.request.subscribe, {&range, 1}, pending.request.policy);
}

std::vector<FidRange> SubscriptionBook::leaving() const {
    std::vector<FidRange> ranges;
    const auto add = [&](const Request& request) {
        if (request.subscribe) return;
        ranges.insert(ranges.end(), request.ranges.begin(), request.ranges.end());
    };
    for (const auto& [number, pending] : asked_)
        add(pending.request);
    for (const Pending& pending : unsent_)
        add(pending.request);
    return normalised(ranges);
}

std::vector<FidRange> SubscriptionBook::wanted() const {
    std::vector<FidRange> ranges;
    wanted_.for_each([&](const FidRange& range, const Wish&) { ranges.push_back(range); });
    return normalised(ranges);
}

} // namespace netio::pubsub::inline v0_2
