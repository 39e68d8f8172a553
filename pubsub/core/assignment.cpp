// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/assignment.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Where ranges that end in front of `fid` are over.
std::size_t place_of(std::span<const FidRange> set, Fid fid) {
    const auto at = std::ranges::partition_point(
        set, [fid](const FidRange& range) { return range.last < fid; });
    return static_cast<std::size_t>(at - set.begin());
}

// The last fid of a slice of so many ranges that begins at `from`.
Fid end_of_slice(std::span<const FidRange> set, Fid from, std::size_t ranges) {
    const std::size_t behind = place_of(set, from) + ranges;
    return behind < set.size() ? Fid{to_integer(set[behind].first) - 1} : last_fid;
}

// What there is of a set between two fids.
std::vector<FidRange> between(std::span<const FidRange> set, Fid first, Fid last) {
    std::vector<FidRange> part;
    for (std::size_t at = place_of(set, first); at < set.size() && set[at].first <= last; ++at)
        part.push_back(
            {.first = std::max(set[at].first, first), .last = std::min(set[at].last, last)});
    return part;
}

// The set with `part` between two fids, whatever was there before.
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

bool Assignment::is_leaving(SourceId source) const {
    const auto claim = claims_.find(source);
    return claim != claims_.end() && claim->second.leaving;
}

// What is wanted of these fids.
void Assignment::order(SourceId source, bool subscribe, std::span<const FidRange> fids,
                       Outcome& outcome) {
    if (is_leaving(source)) return;
    for (const FidRange& range : fids) {
        ++steps_;
        for (const Wishes::Piece& piece : wanted_.pieces(range)) {
            ++steps_;
            outcome.orders.push_back({.source = source,
                                      .subscribe = subscribe,
                                      .fids = piece.range,
                                      .policy = subscribe ? piece.value : Policy{}});
        }
    }
}

Assignment::Outcome Assignment::want(std::span<const FidRange> fids, Policy policy) {
    Outcome outcome;
    for (const FidRange& range : fids) {
        wanted_.assign(range, policy);
        for (const SourceId source : known_)
            order(source, true, {&range, 1}, outcome);
        for (const auto& owned : owners_.pieces(range))
            order(owned.value, true, {&owned.range, 1}, outcome);
    }
    return outcome;
}

Assignment::Outcome Assignment::unwant(const FidRange& fids) {
    Outcome outcome;
    for (const SourceId source : known_)
        order(source, false, {&fids, 1}, outcome);
    for (const auto& owned : owners_.pieces(fids))
        order(owned.value, false, {&owned.range, 1}, outcome);
    wanted_.erase(fids);
    return outcome;
}

Assignment::Outcome Assignment::add(SourceId source) {
    Outcome outcome;
    known_.push_back(source);
    const FidRange all{.first = Fid{0}, .last = last_fid};
    order(source, true, {&all, 1}, outcome);
    return outcome;
}

// --- whose a fid is -------------------------------------------------------------------------

// Those that nobody owns become its own.
void Assignment::assign_free(SourceId source, std::span<const FidRange> fids, Outcome& outcome) {
    std::vector<FidRange> free;
    for (const FidRange& range : fids)
        std::ranges::move(owners_.absent(range), std::back_inserter(free));
    steps_ += fids.size() + free.size();
    for (const FidRange& range : free)
        owners_.assign(range, source);
    order(source, true, free, outcome);
}

std::vector<FidRange> Assignment::owned(SourceId source, std::span<const FidRange> fids) {
    std::vector<FidRange> own;
    for (const FidRange& range : fids) {
        ++steps_;
        for (const auto& owned : owners_.pieces(range)) {
            ++steps_;
            if (owned.value == source) own.push_back(owned.range);
        }
    }
    return own;
}

// Those that may own what `source` gives up, in a circle; those that are there first.
std::vector<SourceId> Assignment::heirs(SourceId source, SourceId after) const {
    std::vector<SourceId> all;
    const auto begin = claims_.upper_bound(after);
    const auto add = [&](auto from, auto end) {
        for (; from != end; ++from)
            if (from->first != source && !from->second.leaving) all.push_back(from->first);
    };
    add(begin, claims_.end());
    add(claims_.begin(), begin);
    if (!reached_.empty()) { // not of std::ranges, whose answer clang 14 does not compile
        std::stable_partition(all.begin(), all.end(),
                              [&](SourceId id) { return reached_.count(id) > 0; });
    }
    return all;
}

void Assignment::take_over(SourceId source, std::span<const FidRange> fids, Outcome& outcome) {
    std::map<SourceId, std::vector<FidRange>> from;
    for (const FidRange& range : fids) {
        ++steps_;
        for (const auto& owned : owners_.pieces(range)) {
            ++steps_;
            if (owned.value != source && reached_.count(owned.value) == 0)
                from[owned.value].push_back(owned.range);
        }
    }
    for (const auto& [former, taken] : from) {
        for (const FidRange& range : taken)
            owners_.assign(range, source);
        order(former, false, taken, outcome);
        order(source, true, taken, outcome);
    }
}

Assignment::Outcome Assignment::reach(SourceId source) {
    Outcome outcome;
    const auto own = claims_.find(source);
    if (own == claims_.end() || own->second.leaving) return outcome;
    if (reached_.insert(source).second) take_over(source, own->second.fids, outcome);
    return outcome;
}

// What it owned goes to the next one that claims it.
void Assignment::release(SourceId source, std::span<const FidRange> fids, Outcome& outcome) {
    std::vector<FidRange> left = owned(source, fids);
    for (const FidRange& range : left)
        owners_.erase(range);
    order(source, false, left, outcome);
    if (left.empty()) return;
    for (const SourceId other : heirs(source, SourceId{0})) {
        if (left.empty()) return;
        const std::vector<FidRange> taken = common(left, claims_.at(other).fids, steps_);
        assign_free(other, taken, outcome);
        left = without(left, taken, steps_);
    }
}

void Assignment::note_contests(SourceId source, Claim& claim, std::span<const FidRange> fids) {
    for (const FidRange& range : fids) {
        ++steps_;
        for (const auto& owned : owners_.pieces(range)) {
            ++steps_;
            if (is_leaving(owned.value)) continue;
            contested_.insert({owned.value, source});
            if (claim.contests.size() >= contest_limit && claim.contests.count(owned.value) == 0)
                continue;
            for (const Wishes::Piece& wanted : wanted_.pieces(owned.range)) {
                ++steps_;
                Contest& contest = claim.contests
                                       .try_emplace(owned.value, Contest{.owner = owned.value,
                                                                         .other = source,
                                                                         .first = wanted.range})
                                       .first->second;
                contest.fids = sum(contest.fids, wanted.range);
            }
        }
    }
}

// --- what is claimed ------------------------------------------------------------------------

Assignment::Outcome Assignment::claim(SourceId source, std::span<const FidRange> fids) {
    Claim& claim = claims_[source];
    claim.next = normalised(fids);
    return begin_change(source, claim);
}

Assignment::Outcome Assignment::remove(SourceId source) {
    std::erase(known_, source);
    reached_.erase(source);
    contested_.erase(source);
    const auto found = claims_.find(source);
    if (found == claims_.end()) return {};
    found->second.leaving = true;
    found->second.next.clear();
    return begin_change(source, found->second);
}

Assignment::Outcome Assignment::begin_change(SourceId source, Claim& claim) {
    claim.from = Fid{0};
    if (std::exchange(claim.changing, true)) std::erase(changing_, source);
    changing_.push_front(source); // what comes of it now is its own, and nobody else's
    return advance();
}

Assignment::Outcome Assignment::advance() {
    Outcome outcome;
    if (changing_.empty()) return outcome;
    const SourceId source = changing_.front();
    changing_.pop_front();
    Claim& claim = claims_.at(source);
    const Fid last = std::min(end_of_slice(claim.fids, claim.from, slice_),
                              end_of_slice(claim.next, claim.from, slice_));
    change(source, claim, last, outcome);
    if (last != last_fid) {
        claim.from = Fid{to_integer(last) + 1};
        changing_.push_back(source);
        return outcome;
    }
    for (const auto& [owner, contest] : claim.contests)
        if (claims_.count(owner) > 0 && !is_leaving(owner)) outcome.contests.push_back(contest);
    claim.contests.clear();
    claim.changing = false;
    claim.fids = std::exchange(claim.next, {});
    if (claim.leaving) claims_.erase(source);
    return outcome;
}

std::vector<FidRange> Assignment::claimed(SourceId source) const {
    const auto found = claims_.find(source);
    if (found == claims_.end()) return {};
    return found->second.changing ? found->second.next : found->second.fids;
}

// One slice, up to `last`.
void Assignment::change(SourceId source, Claim& claim, Fid last, Outcome& outcome) {
    const std::vector<FidRange> before = between(claim.fids, claim.from, last);
    const std::vector<FidRange> now = between(claim.next, claim.from, last);
    put_between(claim.fids, claim.from, last, now);
    release(source, without(before, now, steps_), outcome);
    const std::vector<FidRange> fresh = without(now, before, steps_);
    note_contests(source, claim, fresh);
    if (reached_.count(source) > 0) take_over(source, fresh, outcome);
    assign_free(source, fresh, outcome);
}

// To those in order, as much as each claims. What is left.
std::vector<FidRange> Assignment::hand_over(SourceId source, std::span<const SourceId> heirs,
                                            Outcome& outcome) {
    std::vector<FidRange> left = owned(source, claims_.at(source).fids);
    for (const SourceId next : heirs) {
        if (left.empty()) break;
        const std::vector<FidRange> taken = common(left, claims_.at(next).fids, steps_);
        for (const FidRange& range : taken)
            owners_.assign(range, next);
        order(source, false, taken, outcome);
        order(next, true, taken, outcome);
        left = without(left, taken, steps_);
    }
    return left;
}

Assignment::Outcome Assignment::ask(SourceId source) {
    Outcome outcome;
    const auto own = claims_.find(source);
    if (own != claims_.end()) order(source, true, owned(source, own->second.fids), outcome);
    return outcome;
}

Assignment::Outcome Assignment::doubt(SourceId source) {
    Outcome outcome;
    lose(source);
    const auto own = claims_.find(source);
    if (own == claims_.end() || own->second.leaving) return outcome;
    std::vector<SourceId> there = heirs(source, source);
    std::erase_if(there, [this](SourceId id) { return reached_.count(id) == 0; });
    hand_over(source, there, outcome);
    return outcome;
}

Assignment::Outcome Assignment::yield(SourceId source, bool for_good) {
    Outcome outcome;
    const auto own = claims_.find(source);
    if (own == claims_.end() || own->second.leaving) return outcome;
    // In a circle, so that each of several has its turn.
    const std::vector<FidRange> left = hand_over(source, heirs(source, source), outcome);
    if (!for_good) return outcome;
    for (const FidRange& range : left)
        owners_.erase(range);
    std::erase(changing_, source);
    contested_.erase(source);
    claims_.erase(own);
    return outcome;
}

} // namespace netio::pubsub::inline v0_2
