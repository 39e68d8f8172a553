// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_assignment.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

// The index of the first range that does not end before `fid`.
std::size_t place_of(std::span<const FidRange> set, Fid fid) {
    const auto at = std::ranges::partition_point(
        set, [fid](const FidRange& range) { return range.last < fid; });
    return static_cast<std::size_t>(at - set.begin());
}

// The last fid of a slice that begins at `from` and has `ranges` ranges.
Fid end_of_slice(std::span<const FidRange> set, Fid from, std::size_t ranges) {
    const std::size_t behind = place_of(set, from) + ranges;
    return behind < set.size() ? Fid{to_integer(set[behind].first) - 1} : last_fid;
}

// The part of a set between two fids.
std::vector<FidRange> between(std::span<const FidRange> set, Fid first, Fid last) {
    std::vector<FidRange> part;
    for (std::size_t at = place_of(set, first); at < set.size() && set[at].first <= last; ++at)
        part.push_back(
            {.first = std::max(set[at].first, first), .last = std::min(set[at].last, last)});
    return part;
}

// Replaces the part of a set between two fids.
void put_between(std::vector<FidRange>& set, Fid first, Fid last, std::vector<FidRange> part) {
    const std::size_t begin = place_of(set, first);
    std::size_t end = begin;
    while (end < set.size() && set[end].first <= last)
        ++end;
    if (begin < end) {
        if (set[begin].first < first)
            part.insert(part.begin(),
                        {.first = set[begin].first, .last = Fid{to_integer(first) - 1}});
        if (last < set[end - 1].last)
            part.push_back({.first = Fid{to_integer(last) + 1}, .last = set[end - 1].last});
    }
    const auto at = set.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto rest = set.erase(at, at + static_cast<std::ptrdiff_t>(end - begin));
    set.insert(rest, part.begin(), part.end());
}

std::uint64_t sum(std::uint64_t fids, const FidRange& more) {
    const std::uint64_t size = to_integer(more.last) - to_integer(more.first);
    return fids < UINT64_MAX - size ? fids + size + 1 : UINT64_MAX;
}

} // namespace

bool FidAssignment::is_leaving(PublisherId publisher) const {
    const auto claim = claims_.find(publisher);
    return claim != claims_.end() && claim->second.leaving;
}

// Appends orders for the wanted ones of the fids.
void FidAssignment::order(PublisherId publisher, bool subscribe, std::span<const FidRange> fids,
                          Outcome& outcome) {
    if (is_leaving(publisher)) return;
    for (const FidRange& range : fids) {
        ++steps_;
        for (const Wishes::Piece& piece : wanted_.pieces(range)) {
            ++steps_;
            outcome.orders.push_back({.publisher = publisher,
                                      .subscribe = subscribe,
                                      .fids = piece.range,
                                      .policy = subscribe ? piece.value : Policy{}});
        }
    }
}

FidAssignment::Outcome FidAssignment::want(std::span<const FidRange> fids, Policy policy) {
    Outcome outcome;
    for (const FidRange& range : fids) {
        wanted_.assign(range, policy);
        for (const PublisherId publisher : known_)
            order(publisher, true, {&range, 1}, outcome);
        for (const auto& owned : owners_.pieces(range))
            order(owned.value, true, {&owned.range, 1}, outcome);
    }
    return outcome;
}

FidAssignment::Outcome FidAssignment::unwant(const FidRange& fids) {
    Outcome outcome;
    for (const PublisherId publisher : known_)
        order(publisher, false, {&fids, 1}, outcome);
    for (const auto& owned : owners_.pieces(fids))
        order(owned.value, false, {&owned.range, 1}, outcome);
    wanted_.erase(fids);
    return outcome;
}

std::vector<FidRange> FidAssignment::unclaimed(std::size_t limit) const {
    std::vector<FidRange> fids;
    wanted_.for_each([&](const FidRange& range, const Policy&) {
        if (fids.size() < limit) std::ranges::move(owners_.absent(range), std::back_inserter(fids));
    });
    fids = normalised(fids); // neighbours with different policies
    fids.resize(std::min(fids.size(), limit));
    return fids;
}

FidAssignment::Outcome FidAssignment::add(PublisherId publisher) {
    Outcome outcome;
    known_.push_back(publisher);
    const FidRange all{.first = Fid{0}, .last = last_fid};
    order(publisher, true, {&all, 1}, outcome);
    return outcome;
}

// --- whose a fid is -------------------------------------------------------------------------

// Makes it the owner of those fids that have no owner.
void FidAssignment::assign_free(PublisherId publisher, std::span<const FidRange> fids,
                                Outcome& outcome) {
    std::vector<FidRange> free;
    for (const FidRange& range : fids)
        std::ranges::move(owners_.absent(range), std::back_inserter(free));
    steps_ += fids.size() + free.size();
    for (const FidRange& range : free)
        owners_.assign(range, publisher);
    order(publisher, true, free, outcome);
}

std::vector<FidRange> FidAssignment::owned(PublisherId publisher, std::span<const FidRange> fids) {
    std::vector<FidRange> own;
    for (const FidRange& range : fids) {
        ++steps_;
        for (const auto& owned : owners_.pieces(range)) {
            ++steps_;
            if (owned.value == publisher) own.push_back(owned.range);
        }
    }
    return own;
}

// The publishers that may own what `publisher` releases, in cyclic order; reached ones first.
std::vector<PublisherId> FidAssignment::successors(PublisherId publisher, PublisherId after) const {
    std::vector<PublisherId> all;
    const auto begin = claims_.upper_bound(after);
    const auto add = [&](auto from, auto end) {
        for (; from != end; ++from)
            if (from->first != publisher && !from->second.leaving) all.push_back(from->first);
    };
    add(begin, claims_.end());
    add(claims_.begin(), begin);
    if (!reached_
             .empty()) { // clang 14 does not compile the result of std::ranges::stable_partition
        std::stable_partition(all.begin(), all.end(),
                              [&](PublisherId id) { return reached_.count(id) > 0; });
    }
    return all;
}

void FidAssignment::take_over(PublisherId publisher, std::span<const FidRange> fids,
                              Outcome& outcome) {
    std::map<PublisherId, std::vector<FidRange>> from;
    for (const FidRange& range : fids) {
        ++steps_;
        for (const auto& owned : owners_.pieces(range)) {
            ++steps_;
            if (owned.value != publisher && reached_.count(owned.value) == 0)
                from[owned.value].push_back(owned.range);
        }
    }
    for (const auto& [former, taken] : from) {
        for (const FidRange& range : taken)
            owners_.assign(range, publisher);
        order(former, false, taken, outcome);
        order(publisher, true, taken, outcome);
    }
}

FidAssignment::Outcome FidAssignment::reach(PublisherId publisher) {
    Outcome outcome;
    const auto own = claims_.find(publisher);
    if (own == claims_.end() || own->second.leaving) return outcome;
    if (reached_.insert(publisher).second) take_over(publisher, own->second.fids, outcome);
    return outcome;
}

// Passes its fids to the next publishers that claim them.
void FidAssignment::release(PublisherId publisher, std::span<const FidRange> fids,
                            Outcome& outcome) {
    std::vector<FidRange> left = owned(publisher, fids);
    for (const FidRange& range : left)
        owners_.erase(range);
    order(publisher, false, left, outcome);
    if (left.empty()) return;
    for (const PublisherId other : successors(publisher, PublisherId{0})) {
        if (left.empty()) return;
        const std::vector<FidRange> taken = common(left, claims_.at(other).fids, steps_);
        assign_free(other, taken, outcome);
        left = without(left, taken, steps_);
    }
}

void FidAssignment::record_conflicts(PublisherId publisher, Claim& claim,
                                     std::span<const FidRange> fids) {
    for (const FidRange& range : fids) {
        ++steps_;
        for (const auto& owned : owners_.pieces(range)) {
            ++steps_;
            if (is_leaving(owned.value)) continue;
            contested_.insert({owned.value, publisher});
            if (claim.contests.size() >= contest_limit && claim.contests.count(owned.value) == 0)
                continue;
            for (const Wishes::Piece& wanted : wanted_.pieces(owned.range)) {
                ++steps_;
                Contest& contest = claim.contests
                                       .try_emplace(owned.value, Contest{.owner = owned.value,
                                                                         .other = publisher,
                                                                         .first = wanted.range})
                                       .first->second;
                contest.fids = sum(contest.fids, wanted.range);
            }
        }
    }
}

// --- what is claimed ------------------------------------------------------------------------

FidAssignment::Outcome FidAssignment::claim(PublisherId publisher, std::span<const FidRange> fids) {
    Claim& claim = claims_[publisher];
    claim.next = normalised(fids);
    return begin_change(publisher, claim);
}

FidAssignment::Outcome FidAssignment::remove(PublisherId publisher) {
    std::erase(known_, publisher);
    reached_.erase(publisher);
    contested_.erase(publisher);
    const auto found = claims_.find(publisher);
    if (found == claims_.end()) return {};
    found->second.leaving = true;
    found->second.next.clear();
    return begin_change(publisher, found->second);
}

FidAssignment::Outcome FidAssignment::begin_change(PublisherId publisher, Claim& claim) {
    claim.from = Fid{0};
    if (std::exchange(claim.changing, true)) std::erase(changing_, publisher);
    changing_.push_front(publisher); // the result of advance() belongs to this change
    return advance();
}

FidAssignment::Outcome FidAssignment::advance() {
    Outcome outcome;
    if (changing_.empty()) return outcome;
    const PublisherId publisher = changing_.front();
    changing_.pop_front();
    Claim& claim = claims_.at(publisher);
    const Fid last = std::min(end_of_slice(claim.fids, claim.from, slice_),
                              end_of_slice(claim.next, claim.from, slice_));
    change(publisher, claim, last, outcome);
    if (last != last_fid) {
        claim.from = Fid{to_integer(last) + 1};
        changing_.push_back(publisher);
        return outcome;
    }
    for (const auto& [owner, contest] : claim.contests)
        if (claims_.count(owner) > 0 && !is_leaving(owner)) outcome.contests.push_back(contest);
    claim.contests.clear();
    claim.changing = false;
    claim.fids = std::exchange(claim.next, {});
    if (claim.leaving) claims_.erase(publisher);
    return outcome;
}

std::vector<FidRange> FidAssignment::claimed(PublisherId publisher) const {
    const auto found = claims_.find(publisher);
    if (found == claims_.end()) return {};
    return found->second.changing ? found->second.next : found->second.fids;
}

// Applies one slice, up to `last`.
void FidAssignment::change(PublisherId publisher, Claim& claim, Fid last, Outcome& outcome) {
    const std::vector<FidRange> before = between(claim.fids, claim.from, last);
    const std::vector<FidRange> now = between(claim.next, claim.from, last);
    put_between(claim.fids, claim.from, last, now);
    release(publisher, without(before, now, steps_), outcome);
    const std::vector<FidRange> fresh = without(now, before, steps_);
    record_conflicts(publisher, claim, fresh);
    if (reached_.count(publisher) > 0) take_over(publisher, fresh, outcome);
    assign_free(publisher, fresh, outcome);
}

// Passes its fids to the successors in order, as far as they claim them. Returns the rest.
std::vector<FidRange> FidAssignment::hand_over(PublisherId publisher,
                                               std::span<const PublisherId> successors,
                                               Outcome& outcome) {
    std::vector<FidRange> left = owned(publisher, claims_.at(publisher).fids);
    for (const PublisherId next : successors) {
        if (left.empty()) break;
        const std::vector<FidRange> taken = common(left, claims_.at(next).fids, steps_);
        for (const FidRange& range : taken)
            owners_.assign(range, next);
        order(publisher, false, taken, outcome);
        order(next, true, taken, outcome);
        left = without(left, taken, steps_);
    }
    return left;
}

FidAssignment::Outcome FidAssignment::ask(PublisherId publisher) {
    Outcome outcome;
    const auto own = claims_.find(publisher);
    if (own != claims_.end()) order(publisher, true, owned(publisher, own->second.fids), outcome);
    return outcome;
}

FidAssignment::Outcome FidAssignment::suspect(PublisherId publisher) {
    Outcome outcome;
    lose(publisher);
    const auto own = claims_.find(publisher);
    if (own == claims_.end() || own->second.leaving) return outcome;
    std::vector<PublisherId> there = successors(publisher, publisher);
    std::erase_if(there, [this](PublisherId id) { return reached_.count(id) == 0; });
    hand_over(publisher, there, outcome);
    return outcome;
}

FidAssignment::Outcome FidAssignment::yield(PublisherId publisher, bool for_good) {
    Outcome outcome;
    const auto own = claims_.find(publisher);
    if (own == claims_.end() || own->second.leaving) return outcome;
    // In cyclic order, so that each publisher gets its turn.
    const std::vector<FidRange> left =
        hand_over(publisher, successors(publisher, publisher), outcome);
    if (!for_good) return outcome;
    for (const FidRange& range : left)
        owners_.erase(range);
    std::erase(changing_, publisher);
    contested_.erase(publisher);
    claims_.erase(own);
    return outcome;
}

} // namespace netio::pubsub::inline v0_3
