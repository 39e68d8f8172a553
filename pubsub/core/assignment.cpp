// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/assignment.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// What is wanted of these fids.
void Assignment::order(SourceId source, bool subscribe, const FidRange& fids,
                       Outcome& outcome) const {
    for (const Wishes::Piece& piece : wanted_.pieces(fids)) {
        outcome.orders.push_back({.source = source,
                                  .subscribe = subscribe,
                                  .fids = piece.range,
                                  .policy = subscribe ? piece.value : Policy{}});
    }
}

Assignment::Outcome Assignment::want(std::span<const FidRange> fids, Policy policy) {
    Outcome outcome;
    for (const FidRange& range : fids) {
        wanted_.assign(range, policy);
        for (const SourceId source : known_)
            order(source, true, range, outcome);
        for (const auto& owned : owners_.pieces(range))
            order(owned.value, true, owned.range, outcome);
    }
    return outcome;
}

Assignment::Outcome Assignment::unwant(const FidRange& fids) {
    Outcome outcome;
    for (const SourceId source : known_)
        order(source, false, fids, outcome);
    for (const auto& owned : owners_.pieces(fids))
        order(owned.value, false, owned.range, outcome);
    wanted_.erase(fids);
    return outcome;
}

Assignment::Outcome Assignment::add(SourceId source) {
    Outcome outcome;
    known_.push_back(source);
    order(source, true, {.first = Fid{0}, .last = Fid{UINT64_MAX}}, outcome);
    return outcome;
}

// Those that nobody owns become its own.
void Assignment::assign_free(SourceId source, std::span<const FidRange> fids, Outcome& outcome) {
    for (const FidRange& range : fids) {
        for (const FidRange& free : owners_.absent(range)) {
            owners_.assign(free, source);
            order(source, true, free, outcome);
        }
    }
}

// What it owned goes to the next one that claims it.
void Assignment::release(SourceId source, const FidRange& fids, Outcome& outcome) {
    for (const auto& owned : owners_.pieces(fids)) {
        if (owned.value != source) continue;
        owners_.erase(owned.range);
        order(source, false, owned.range, outcome);
        for (const auto& [other, claimed] : claims_) {
            if (other == source) continue;
            for (const FidRange& range : claimed) {
                const FidRange both{.first = std::max(range.first, owned.range.first),
                                    .last = std::min(range.last, owned.range.last)};
                if (both.first <= both.last) assign_free(other, {&both, 1}, outcome);
            }
        }
    }
}

Assignment::Outcome Assignment::claim(SourceId source, std::span<const FidRange> fids) {
    Outcome outcome;
    const std::vector<FidRange> now = normalised(fids);
    const std::vector<FidRange> before = std::exchange(claims_[source], now);
    std::vector<FidRange> given_up = before;
    for (const FidRange& range : now)
        given_up = without(given_up, range);
    for (const FidRange& range : given_up)
        release(source, range, outcome);
    std::vector<FidRange> fresh = now;
    for (const FidRange& range : before)
        fresh = without(fresh, range);
    for (const FidRange& range : fresh) {
        for (const auto& owned : owners_.pieces(range)) {
            for (const Wishes::Piece& wanted : wanted_.pieces(owned.range)) {
                outcome.contests.push_back(
                    {.fids = wanted.range, .owner = owned.value, .other = source});
            }
        }
    }
    assign_free(source, fresh, outcome);
    return outcome;
}

Assignment::Outcome Assignment::yield(SourceId source, bool for_good) {
    Outcome outcome;
    const auto own = claims_.find(source);
    if (own == claims_.end()) return outcome;
    // In a circle, so that each of several has its turn.
    for (auto next = std::next(own); next != own; ++next) {
        if (next == claims_.end()) next = claims_.begin();
        if (next == own) break;
        for (const FidRange& range : next->second) {
            for (const auto& owned : owners_.pieces(range)) {
                if (owned.value != source) continue;
                owners_.assign(owned.range, next->first);
                order(source, false, owned.range, outcome);
                order(next->first, true, owned.range, outcome);
            }
        }
    }
    if (!for_good) return outcome;
    for (const FidRange& range : own->second)
        for (const auto& owned : owners_.pieces(range))
            if (owned.value == source) owners_.erase(owned.range);
    claims_.erase(own);
    return outcome;
}

Assignment::Outcome Assignment::remove(SourceId source) {
    Outcome outcome;
    std::erase(known_, source);
    const auto found = claims_.find(source);
    if (found == claims_.end()) return outcome;
    const std::vector<FidRange> claimed = std::move(found->second);
    claims_.erase(found);
    for (const FidRange& range : claimed)
        release(source, range, outcome);
    std::erase_if(outcome.orders, [&](const Order& each) { return each.source == source; });
    return outcome;
}

} // namespace netio::pubsub::inline v0_2
