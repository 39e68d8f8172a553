// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscription_table.hpp"

#include "netio/base/check.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace netio::pubsub::inline v0_3 {
namespace {

constexpr Fid after(Fid fid) noexcept {
    return Fid{to_integer(fid) + 1};
}
constexpr Fid before(Fid fid) noexcept {
    return Fid{to_integer(fid) - 1};
}

using Ranges = std::map<Fid, Fid>;

// The first of `ranges` that ends at `first` or later.
Ranges::const_iterator first_reaching(const Ranges& ranges, Fid first) {
    auto at = ranges.upper_bound(first);
    if (at != ranges.begin() && std::prev(at)->second >= first) --at;
    return at;
}

// The first range that overlaps or adjoins `range`.
Ranges::const_iterator first_touching(const Ranges& ranges, const FidRange& range) {
    return first_reaching(ranges, range.first == Fid{0} ? range.first : before(range.first));
}

bool touches(const Ranges& ranges, const FidRange& range) {
    const auto at = first_touching(ranges, range);
    return at != ranges.end() &&
           (at->first <= range.last || (range.last != last_fid && at->first == after(range.last)));
}

void insert_range(Ranges& ranges, FidRange range) {
    while (touches(ranges, range)) {
        const auto at = first_touching(ranges, range);
        range.first = std::min(range.first, at->first);
        range.last = std::max(range.last, at->second);
        ranges.erase(at);
    }
    ranges.emplace(range.first, range.last);
}

void erase_range(Ranges& ranges, const FidRange& range) {
    auto at = first_reaching(ranges, range.first);
    while (at != ranges.end() && at->first <= range.last) {
        const FidRange old{.first = at->first, .last = at->second};
        at = ranges.erase(at);
        if (old.first < range.first) ranges.emplace(old.first, before(range.first));
        if (old.last > range.last) ranges.emplace(after(range.last), old.last);
    }
}

} // namespace

SubscriptionTable::SubscriptionTable(std::size_t ranges_per_subscriber_limit)
    : ranges_per_subscriber_limit_{ranges_per_subscriber_limit}, groups_(1) {
    segments_.emplace(Fid{0}, empty_group);
    group_by_subscribers_.emplace(std::vector<Interest>{}, empty_group);
    retain(empty_group);
}

bool SubscriptionTable::add(Interest subscriber, const FidRange& range,
                            std::vector<FidRange>& added) {
    NETIO_CHECK(range.first <= range.last);
    const auto found = ranges_.find(subscriber);
    const std::size_t count = found == ranges_.end() ? 0 : found->second.size();
    if (count >= ranges_per_subscriber_limit_ && (count == 0 || !touches(found->second, range))) {
        return false;
    }
    insert_range(ranges_[subscriber], range);
    change_segments(subscriber, range, true, added);
    return true;
}

bool SubscriptionTable::remove(Interest subscriber, const FidRange& range,
                               std::vector<FidRange>& removed) {
    NETIO_CHECK(range.first <= range.last);
    const auto found = ranges_.find(subscriber);
    if (found == ranges_.end()) return true;
    Ranges& ranges = found->second;
    const auto hit = first_reaching(ranges, range.first);
    const bool splits = hit != ranges.end() && hit->first < range.first && hit->second > range.last;
    if (splits && ranges.size() >= ranges_per_subscriber_limit_) return false;
    erase_range(ranges, range);
    if (ranges.empty()) ranges_.erase(found);
    change_segments(subscriber, range, false, removed);
    return true;
}

std::vector<FidRange> SubscriptionTable::remove_subscriber(Interest subscriber) {
    std::vector<FidRange> removed;
    const auto node = ranges_.extract(subscriber);
    if (node.empty()) return removed;
    for (const auto& [first, last] : node.mapped())
        change_segments(subscriber, {.first = first, .last = last}, false, removed);
    return removed;
}

void SubscriptionTable::make_live(Interest late, const FidRange& range) {
    Interest live = late;
    live.late = false;
    std::vector<FidRange> changed;
    for (const FidRange& part : parts(late, range)) {
        const auto found = ranges_.find(late);
        erase_range(found->second, part);
        if (found->second.empty()) ranges_.erase(found);
        insert_range(ranges_[live], part);
        change_segments(late, part, false, changed);
        change_segments(live, part, true, changed);
    }
}

std::vector<FidRange> SubscriptionTable::parts(Interest subscriber, const FidRange& range) const {
    std::vector<FidRange> list;
    const auto found = ranges_.find(subscriber);
    if (found == ranges_.end()) return list;
    for (auto at = first_reaching(found->second, range.first);
         at != found->second.end() && at->first <= range.last; ++at) {
        list.push_back(
            {.first = std::max(at->first, range.first), .last = std::min(at->second, range.last)});
    }
    return list;
}

GroupId SubscriptionTable::find(Fid fid) const {
    return std::prev(segments_.upper_bound(fid))->second;
}

bool SubscriptionTable::wants(Interest subscriber, Fid fid) const {
    const auto found = ranges_.find(subscriber);
    if (found == ranges_.end()) return false;
    const auto range = first_reaching(found->second, fid);
    return range != found->second.end() && range->first <= fid;
}

std::size_t SubscriptionTable::range_count(Interest subscriber) const {
    const auto found = ranges_.find(subscriber);
    return found == ranges_.end() ? 0 : found->second.size();
}

void SubscriptionTable::change_segments(Interest subscriber, const FidRange& range, bool adding,
                                        std::vector<FidRange>& changed) {
    auto at = split_at(range.first);
    const auto end = range.last == last_fid ? segments_.end() : split_at(after(range.last));
    bool any = false;
    for (; at != end; ++at) {
        const std::vector<Interest>& subscribers = groups_[index(at->second)].subscribers;
        if (std::ranges::binary_search(subscribers, subscriber) == adding) continue;
        const GroupId group = with(at->second, subscriber, adding);
        retain(group);
        release(std::exchange(at->second, group));
        const auto next = std::next(at);
        const Fid last = next == segments_.end() ? last_fid : before(next->first);
        // Neighbouring segments that both changed are one change to the caller.
        if (!changed.empty() && any && after(changed.back().last) == at->first) {
            changed.back().last = last;
        } else {
            changed.push_back({.first = at->first, .last = last});
        }
        any = true;
    }
    merge_around(range);
    if (any) ++generation_;
}

// Makes a segment begin at `first` and returns it.
std::map<Fid, GroupId>::iterator SubscriptionTable::split_at(Fid first) {
    const auto at = std::prev(segments_.upper_bound(first));
    if (at->first == first) return at;
    retain(at->second);
    return segments_.emplace_hint(std::next(at), first, at->second);
}

// Segments of the same group that touch become one.
void SubscriptionTable::merge_around(const FidRange& range) {
    auto at = std::prev(segments_.upper_bound(range.first));
    if (at != segments_.begin()) --at;
    for (auto next = std::next(at); next != segments_.end(); next = std::next(at)) {
        const bool beyond = range.last != last_fid && next->first > after(range.last);
        if (next->second == at->second) {
            release(next->second);
            segments_.erase(next);
        } else if (beyond) {
            break;
        } else {
            at = next;
        }
    }
}

GroupId SubscriptionTable::with(GroupId group, Interest subscriber, bool adding) {
    std::vector<Interest> subscribers = groups_[index(group)].subscribers;
    const auto place = std::ranges::lower_bound(subscribers, subscriber);
    if (adding) {
        subscribers.insert(place, subscriber);
    } else {
        subscribers.erase(place);
    }
    if (const auto found = group_by_subscribers_.find(subscribers);
        found != group_by_subscribers_.end()) {
        return found->second;
    }
    if (free_groups_.empty()) {
        free_groups_.push_back(static_cast<std::uint32_t>(groups_.size()));
        groups_.emplace_back();
    }
    const GroupId made{free_groups_.back()};
    free_groups_.pop_back();
    groups_[index(made)] = {.subscribers = subscribers};
    group_by_subscribers_.emplace(std::move(subscribers), made);
    return made;
}

void SubscriptionTable::release(GroupId group) {
    Group& entry = groups_[index(group)];
    NETIO_CHECK(entry.segments > 0);
    if (--entry.segments > 0 || group == empty_group) return;
    group_by_subscribers_.erase(entry.subscribers);
    entry.subscribers.clear();
    free_groups_.push_back(static_cast<std::uint32_t>(group));
}

// --- FanOut ------------------------------------------------------------------------------------

FanOut::FanOut(SlowPolicy own_policy, std::size_t ranges_per_subscriber_limit, const Owned& owned,
               bool keeps_newest)
    : own_policy_{own_policy}, keeps_newest_{keeps_newest},
      ranges_limit_{ranges_per_subscriber_limit}, table_{ranges_limit_} {
    if (owned) owned_ = normalised(*owned);
}

// Fids that are not published here are not entered, so that the table does not grow with them.
detail::FidState& FanOut::refresh(Fid fid) {
    if (!owns(fid)) {
        elsewhere_.group = &elsewhere_group_;
        return elsewhere_;
    }
    detail::FidState& state = fids_.fids[fid];
    const GroupId id = table_.find(fid);
    const auto at = static_cast<std::size_t>(id);
    if (at >= groups_.size()) groups_.resize(at + 1);
    if (!groups_[at]) {
        const std::span<const Interest> members = table_.members(id);
        groups_[at] = std::make_unique<Group>();
        std::ranges::copy_if(members, std::back_inserter(groups_[at]->members),
                             [](const Interest& member) { return !member.late; });
        groups_[at]->has_late = groups_[at]->members.size() < members.size();
    }
    state.group = groups_[at].get();
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

FanOut::Addition FanOut::subscribe(SubscriberId subscriber, std::span<const Wish> wishes,
                                   const HistoryLog* history) {
    for (const Wish& wish : wishes) {
        const bool unknown = wish.policy == SlowPolicy::newest && !keeps_newest_;
        if (unknown || blocks_longer(wish.policy, own_policy_))
            return {.result = SubscriptionResult::policy_refused, .positions = {}, .late = {}};
    }
    void_groups();
    std::vector<Step> steps;
    Added added;
    if (history != nullptr) late_.insert(subscriber);
    const bool may_be_late = late_.contains(subscriber);
    const bool good = std::ranges::all_of(wishes, [&](const Wish& wish) {
        return may_be_late ? take_with_late(subscriber, wish, history != nullptr, steps, added)
                           : take(subscriber, wish, false, steps, added.live);
    });
    if (!good) undo(steps);
    if (may_be_late) note_late(subscriber);
    if (!good) return {.result = SubscriptionResult::table_full, .positions = {}, .late = {}};
    Addition addition{.result = SubscriptionResult::accepted,
                      .positions =
                          note_published_before(subscriber, normalised(added.live), nullptr),
                      .late = normalised(added.late)};
    if (addition.late.empty()) return addition;
    const auto kept = note_published_before(subscriber, addition.late, history);
    addition.positions.insert(addition.positions.end(), kept.begin(), kept.end());
    return addition;
}

// Moves a range to the policy of the wish. Appends the fids that are new to the subscriber.
bool FanOut::take(SubscriberId subscriber, const Wish& wish, bool late, std::vector<Step>& steps,
                  std::vector<FidRange>& added) {
    const auto& [range, policy] = wish;
    const std::size_t before = steps.size();
    bool good = true;
    for (const SlowPolicy other : slow_policies)
        good = good && (other == policy || remove({subscriber, other, late}, range, steps));
    const std::size_t moved = steps.size(); // the earlier steps only change the policy
    good = good && add({subscriber, policy, late}, range, steps);
    if (!good || range_count(subscriber) > ranges_limit_) return false;
    std::vector<FidRange> fresh;
    for (std::size_t i = moved; i < steps.size(); ++i)
        fresh.push_back(steps[i].range);
    std::vector<FidRange> had;
    for (std::size_t i = before; i < moved; ++i)
        had.push_back(steps[i].range);
    fresh = without(fresh, normalised(had), steps_);
    added.insert(added.end(), fresh.begin(), fresh.end());
    return true;
}

// What is late stays late. With `history` what is new begins late.
bool FanOut::take_with_late(SubscriberId subscriber, const Wish& wish, bool history,
                            std::vector<Step>& steps, Added& added) {
    std::vector<FidRange> late;
    std::vector<FidRange> live;
    for (const SlowPolicy policy : slow_policies) {
        std::ranges::copy(table_.parts({subscriber, policy, true}, wish.fids),
                          std::back_inserter(late));
        std::ranges::copy(table_.parts({subscriber, policy, false}, wish.fids),
                          std::back_inserter(live));
    }
    late = normalised(late);
    std::vector<FidRange> others = without({&wish.fids, 1}, late, steps_);
    if (history) {
        live = normalised(live);
        const auto fresh = without(others, live, steps_);
        late.insert(late.end(), fresh.begin(), fresh.end());
        others = std::move(live);
    }
    const auto take_all = [&](std::span<const FidRange> ranges, bool are_late,
                              std::vector<FidRange>& fresh) {
        return std::ranges::all_of(ranges, [&](const FidRange& range) {
            return take(subscriber, {.fids = range, .policy = wish.policy}, are_late, steps, fresh);
        });
    };
    return take_all(normalised(late), true, added.late) && take_all(others, false, added.live);
}

void FanOut::make_live(SubscriberId subscriber, std::span<const FidRange> fids) {
    void_groups();
    for (const SlowPolicy policy : slow_policies)
        for (const FidRange& range : fids)
            table_.make_live({subscriber, policy, true}, range);
    note_late(subscriber);
}

void FanOut::note_late(SubscriberId subscriber) {
    const bool is_late = std::ranges::any_of(slow_policies, [&](SlowPolicy policy) {
        return table_.wants_anything({subscriber, policy, true});
    });
    if (is_late) {
        late_.insert(subscriber);
    } else {
        late_.erase(subscriber);
    }
}

FanOut::Removal FanOut::unsubscribe(SubscriberId subscriber, std::span<const FidRange> ranges) {
    void_groups();
    std::vector<Step> steps;
    for (const FidRange& range : ranges) {
        const bool failed = any_interest(
            subscriber, [&](const Interest& interest) { return !remove(interest, range, steps); });
        if (failed || range_count(subscriber) > ranges_limit_) {
            undo(steps);
            return {.result = SubscriptionResult::table_full, .removed = {}};
        }
    }
    note_late(subscriber);
    std::vector<FidRange> removed;
    for (const Step& step : steps)
        removed.push_back(step.range);
    return {.result = SubscriptionResult::accepted, .removed = normalised(removed)};
}

std::vector<FidRange> FanOut::remove(SubscriberId subscriber) {
    void_groups();
    std::vector<FidRange> had;
    any_interest(subscriber, [&](const Interest& interest) {
        const std::vector<FidRange> removed = table_.remove_subscriber(interest);
        had.insert(had.end(), removed.begin(), removed.end());
        return false;
    });
    late_.erase(subscriber);
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

// Does not fail: in reverse order each step meets the limits that it met before.
void FanOut::undo(std::span<const Step> steps) {
    std::vector<FidRange> changed;
    std::for_each(steps.rbegin(), steps.rend(), [&](const Step& step) {
        NETIO_CHECK(step.added ? table_.remove(step.interest, step.range, changed)
                               : table_.add(step.interest, step.range, changed));
    });
}

// --- questions ------------------------------------------------------------------------------

// Calls visit(interest) for each kind that the subscriber may have, until it returns true.
template <typename Visit>
bool FanOut::any_interest(SubscriberId subscriber, Visit visit) const {
    const bool may_be_late = late_.contains(subscriber);
    return std::ranges::any_of(slow_policies, [&](SlowPolicy policy) {
        return visit(Interest{subscriber, policy, false}) ||
               (may_be_late && visit(Interest{subscriber, policy, true}));
    });
}

std::size_t FanOut::range_count(SubscriberId subscriber) const {
    std::size_t count = 0;
    any_interest(subscriber, [&](const Interest& interest) {
        count += table_.range_count(interest);
        return false;
    });
    return count;
}

bool FanOut::wants(SubscriberId subscriber, Fid fid) const {
    return any_interest(subscriber,
                        [&](const Interest& interest) { return table_.wants(interest, fid); });
}

bool FanOut::wants_anything(SubscriberId subscriber) const {
    return any_interest(subscriber,
                        [&](const Interest& interest) { return table_.wants_anything(interest); });
}

SlowPolicy FanOut::policy_of(SubscriberId subscriber, Fid fid) const {
    SlowPolicy policy = own_policy_;
    any_interest(subscriber, [&](const Interest& interest) {
        const bool found = table_.wants(interest, fid);
        if (found) policy = interest.policy;
        return found;
    });
    return policy;
}

std::size_t FanOut::bytes_of_subscribers() const noexcept {
    std::size_t sum = 0;
    for (const auto& [subscriber, counts] : published_before_)
        sum += counts.bytes();
    return sum;
}

// --- totals ---------------------------------------------------------------------------------

std::vector<FidCount> FanOut::note_published_before(SubscriberId subscriber,
                                                    std::span<const FidRange> fids,
                                                    const HistoryLog* history) {
    std::vector<FidCount> published;
    visit_within(fids_.fids, fids, steps_, [&](Fid fid, const detail::FidState& state) {
        if (state.published == 0) return;
        const std::uint64_t before = history != nullptr ? history->first_of(fid) : state.published;
        published.push_back({.fid = fid, .count = before});
    });
    if (!std::ranges::is_sorted(published, {}, &FidCount::fid))
        std::ranges::sort(published, {}, &FidCount::fid);
    // A count of 0 replaces that of an earlier subscription.
    published_before_[subscriber].add(published);
    std::erase_if(published, [](const FidCount& before) { return before.count == 0; });
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

// --- rights ------------------------------------------------------------------------------------

SlowPolicy OwnPolicies::instead_of(SlowPolicy granted) const noexcept {
    if (granted == SlowPolicy::newest && !keeps_newest) return SlowPolicy::drop;
    return blocks_longer(granted, policy) ? policy : granted;
}

std::optional<std::vector<FanOut::Wish>> permitted(const access::Rights& rights,
                                                   const SubscriptionRequest& request,
                                                   OwnPolicies own, std::size_t& steps) {
    std::optional<access::SlowPolicy> asked;
    if (request.policy) asked = access_policy_of(*request.policy);
    std::vector<FanOut::Wish> wishes;
    for (const FidRange& range : request.ranges) {
        std::uint64_t next = to_integer(range.first); // the first fid without a policy yet
        const std::uint64_t last = to_integer(range.last);
        bool whole = false;
        for (std::size_t at = rights.fids_from(next, steps); at < rights.fids.size(); ++at) {
            const access::FidRight& right = rights.fids[at];
            const std::uint64_t end = std::min(right.last, last);
            const auto found = rights.subscribe(next, end, asked, steps);
            if (right.first > next || !found.permitted) return std::nullopt;
            SlowPolicy policy = found.slow_policy ? policy_of(*found.slow_policy) : own.policy;
            const bool is_asked = asked && found.slow_policy == asked;
            if (!is_asked) policy = own.instead_of(policy);
            wishes.push_back({.fids = {.first = Fid{next}, .last = Fid{end}}, .policy = policy});
            whole = end == last;
            if (whole) break;
            next = end + 1;
        }
        if (!whole) return std::nullopt;
    }
    return wishes;
}

// --- published fids ----------------------------------------------------------------------------

namespace {

std::optional<FidRange> common(const FidRange& one, const FidRange& other) {
    const FidRange both{.first = std::max(one.first, other.first),
                        .last = std::min(one.last, other.last)};
    if (both.last < both.first) return {};
    return both;
}

// The ranges that do not end below the fid.
std::span<const FidRange> from(std::span<const FidRange> ranges, Fid fid) {
    const auto first = std::ranges::partition_point(
        ranges, [&](const FidRange& range) { return range.last < fid; });
    return ranges.subspan(static_cast<std::size_t>(first - ranges.begin()));
}

// The nearest range that begins below the fid.
std::optional<FidRange> nearest_below(std::span<const FidRange> ranges,
                                      std::span<const FidRange> permitted, Fid fid) {
    if (fid == Fid{0}) return {};
    const Fid last{to_integer(fid) - 1};
    for (auto right = permitted.rbegin(); right != permitted.rend(); ++right) {
        if (right->first > last) continue;
        const auto behind = std::ranges::partition_point(ranges, [&](const FidRange& range) {
            return range.first <= std::min(last, right->last);
        });
        if (behind == ranges.begin()) return {};
        if (auto found = common(*std::prev(behind), *right)) return found;
    }
    return {};
}

} // namespace

void FidListing::make(std::vector<Fid> fids) {
    made_from_ = fids.size();
    std::ranges::sort(fids);
    ranges_.clear();
    for (const Fid fid : fids) {
        if (!ranges_.empty() && to_integer(ranges_.back().last) + 1 == to_integer(fid)) {
            ranges_.back().last = fid;
        } else {
            ranges_.push_back({.first = fid, .last = fid});
        }
    }
}

FidPage FidListing::page(Fid first, std::size_t limit, std::span<const FidRange> permitted) const {
    FidPage page;
    Fid next = first; // ranges from here on are not in the page yet
    if (const auto below = nearest_below(ranges_, permitted, first)) {
        page.ranges.push_back(*below);
        if (below->last == Fid{UINT64_MAX}) return page;
        next = std::max(next, Fid{to_integer(below->last) + 1});
    }
    for (const FidRange& right : from(permitted, next)) {
        for (const FidRange& range : from(ranges_, std::max(next, right.first))) {
            auto found = common(range, right);
            if (!found) break;
            found->first = std::max(found->first, next);
            if (page.ranges.size() >= limit) {
                page.more = true;
                return page;
            }
            page.ranges.push_back(*found);
        }
    }
    return page;
}

} // namespace netio::pubsub::inline v0_3
