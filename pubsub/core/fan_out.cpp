// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fan_out.hpp"

#include "netio/base/check.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>

namespace netio::pubsub::inline v0_2 {

FanOut::FanOut(SlowPolicy own_policy, std::size_t ranges_per_subscriber_limit, const Owned& owned,
               bool keeps_newest)
    : own_policy_{own_policy}, keeps_newest_{keeps_newest},
      ranges_limit_{ranges_per_subscriber_limit}, table_{ranges_limit_} {
    if (owned) owned_ = normalised(*owned);
}

// What is not published here has no place in the table, which would grow with it.
detail::FidState& FanOut::refresh(Fid fid) {
    if (!owns(fid)) {
        elsewhere_.lane = &elsewhere_group_;
        return elsewhere_;
    }
    detail::FidState& state = fids_.fids[fid];
    const GroupId id = table_.find(fid);
    const auto at = static_cast<std::size_t>(id);
    if (at >= groups_.size()) groups_.resize(at + 1);
    if (!groups_[at]) {
        const std::span<const Interest> members = table_.members(id);
        groups_[at] = std::make_unique<Group>();
        groups_[at]->members.assign(members.begin(), members.end());
    }
    state.lane = groups_[at].get();
    state.generation = fids_.generation;
    return state;
}

bool FanOut::owns(Fid fid) const {
    return !owned_ || contains(*owned_, fid);
}

void FanOut::void_groups() {
    for (const auto& group : groups_)
        NETIO_CHECK(!group || group->place == Group::nowhere);
    groups_.clear();
    ++fids_.generation;
}

// --- changes --------------------------------------------------------------------------------

std::vector<FanOut::Wish> FanOut::wishes_of(const SubscriptionRequest& request) const {
    std::vector<Wish> wishes;
    for (const FidRange& range : request.ranges)
        wishes.push_back({.fids = range, .policy = request.policy.value_or(own_policy_)});
    return wishes;
}

std::vector<FidRange> FanOut::asked_with(SlowPolicy policy, std::span<const Wish> wishes) {
    std::vector<FidRange> ranges;
    for (const Wish& wish : wishes)
        if (wish.policy == policy) ranges.push_back(wish.fids);
    return normalised(ranges);
}

FanOut::Addition FanOut::subscribe(SubscriberId subscriber, std::span<const Wish> wishes) {
    for (const Wish& wish : wishes) {
        const bool unknown = wish.policy == SlowPolicy::newest && !keeps_newest_;
        if (unknown || holds_up_more(wish.policy, own_policy_))
            return {.result = SubscriptionResult::policy_refused, .positions = {}};
    }
    void_groups();
    std::vector<Step> steps;
    std::vector<FidRange> added;
    for (const auto& [range, policy] : wishes) {
        const std::size_t before = steps.size();
        bool good = true;
        for (const SlowPolicy other : slow_policies)
            good = good && (other == policy || remove({subscriber, other}, range, steps));
        const std::size_t moved = steps.size(); // those before only change their policy
        good = good && add({subscriber, policy}, range, steps);
        if (!good || range_count(subscriber) > ranges_limit_) {
            undo(steps);
            return {.result = SubscriptionResult::table_full, .positions = {}};
        }
        std::vector<FidRange> fresh;
        for (std::size_t i = moved; i < steps.size(); ++i)
            fresh.push_back(steps[i].range);
        std::vector<FidRange> had;
        for (std::size_t i = before; i < moved; ++i)
            had.push_back(steps[i].range);
        fresh = without(fresh, normalised(had), steps_);
        added.insert(added.end(), fresh.begin(), fresh.end());
    }
    return {.result = SubscriptionResult::accepted,
            .positions = note_published_before(subscriber, normalised(added))};
}

FanOut::Removal FanOut::unsubscribe(SubscriberId subscriber, std::span<const FidRange> ranges) {
    void_groups();
    std::vector<Step> steps;
    for (const FidRange& range : ranges) {
        bool good = true;
        for (const SlowPolicy policy : slow_policies)
            good = good && remove({subscriber, policy}, range, steps);
        if (!good || range_count(subscriber) > ranges_limit_) {
            undo(steps);
            return {.result = SubscriptionResult::table_full, .removed = {}};
        }
    }
    std::vector<FidRange> removed;
    for (const Step& step : steps)
        removed.push_back(step.range);
    return {.result = SubscriptionResult::accepted, .removed = normalised(removed)};
}

std::vector<FidRange> FanOut::remove(SubscriberId subscriber) {
    void_groups();
    std::vector<FidRange> had;
    for (const SlowPolicy policy : slow_policies) {
        const std::vector<FidRange> removed = table_.remove_subscriber({subscriber, policy});
        had.insert(had.end(), removed.begin(), removed.end());
    }
    published_before_.erase(subscriber);
    return normalised(had);
}

bool FanOut::add(Interest interest, const FidRange& range, std::vector<Step>& steps) {
    std::vector<FidRange> added;
    if (!table_.add(interest, range, added)) return false;
    for (const FidRange& part : added)
        steps.push_back({.interest = interest, .range = part, .added = true});
    return true;
}

bool FanOut::remove(Interest interest, const FidRange& range, std::vector<Step>& steps) {
    std::vector<FidRange> removed;
    if (!table_.remove(interest, range, removed)) return false;
    for (const FidRange& part : removed)
        steps.push_back({.interest = interest, .range = part, .added = false});
    return true;
}

// Backwards the same limits hold as forwards, so none of it fails.
void FanOut::undo(std::span<const Step> steps) {
    std::vector<FidRange> changed;
    std::for_each(steps.rbegin(), steps.rend(), [&](const Step& step) {
        NETIO_CHECK(step.added ? table_.remove(step.interest, step.range, changed)
                               : table_.add(step.interest, step.range, changed));
    });
}

// --- questions ------------------------------------------------------------------------------

std::size_t FanOut::range_count(SubscriberId subscriber) const {
    std::size_t count = 0;
    for (const SlowPolicy policy : slow_policies)
        count += table_.range_count({subscriber, policy});
    return count;
}

bool FanOut::wants(SubscriberId subscriber, Fid fid) const {
    return std::ranges::any_of(slow_policies, [&](SlowPolicy policy) {
        return table_.wants({subscriber, policy}, fid);
    });
}

bool FanOut::wants_anything(SubscriberId subscriber) const {
    return std::ranges::any_of(slow_policies, [&](SlowPolicy policy) {
        return table_.wants_anything({subscriber, policy});
    });
}

SlowPolicy FanOut::policy_of(SubscriberId subscriber, Fid fid) const {
    const auto found = std::ranges::find_if(slow_policies, [&](SlowPolicy policy) {
        return table_.wants({subscriber, policy}, fid);
    });
    return found == slow_policies.end() ? own_policy_ : *found;
}

std::size_t FanOut::bytes_of_subscribers() const noexcept {
    std::size_t sum = 0;
    for (const auto& [subscriber, counts] : published_before_)
        sum += counts.bytes();
    return sum;
}

// --- totals ---------------------------------------------------------------------------------

std::vector<FidCount> FanOut::note_published_before(SubscriberId subscriber,
                                                    std::span<const FidRange> fids) {
    std::vector<FidCount> published;
    visit_within(fids_.fids, fids, steps_, [&](Fid fid, const detail::FidState& state) {
        if (state.published > 0) published.push_back({.fid = fid, .count = state.published});
    });
    if (!std::ranges::is_sorted(published, {}, &FidCount::fid))
        std::ranges::sort(published, {}, &FidCount::fid);
    published_before_[subscriber].add(published);
    return published;
}

TotalsPart FanOut::totals(SubscriberId subscriber, std::size_t& next,
                          std::span<FidCount> out) const {
    const auto before = published_before_.find(subscriber);
    TotalsPart part;
    next = fids_.fids.visit_places(next, fids_at_once, [&](Fid fid, const detail::FidState& state) {
        if (state.published == 0 || !wants(subscriber, fid)) return true;
        if (part.count == out.size()) return false;
        const std::uint64_t earlier =
            before == published_before_.end() ? 0 : before->second.find(fid);
        out[part.count++] = {.fid = fid, .count = state.published - earlier};
        return true;
    });
    part.last = next == fids_.fids.places();
    return part;
}

} // namespace netio::pubsub::inline v0_2
