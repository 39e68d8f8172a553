// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/subscription_table.hpp"

#include "netio/base/check.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

constexpr Fid after(Fid fid) noexcept {
    return Fid{to_integer(fid) + 1};
}
constexpr Fid before(Fid fid) noexcept {
    return Fid{to_integer(fid) - 1};
}

using Ranges = std::map<Fid, Fid>;

// The first of `ranges` that ends at `first` or behind it.
Ranges::const_iterator first_reaching(const Ranges& ranges, Fid first) {
    auto at = ranges.upper_bound(first);
    if (at != ranges.begin() && std::prev(at)->second >= first) --at;
    return at;
}

// The first range that overlaps or adjoins `range`, and those that follow it, become one with it.
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
    segments_.emplace(Fid{0}, nobody);
    group_by_subscribers_.emplace(std::vector<Interest>{}, nobody);
    retain(nobody);
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
    if (--entry.segments > 0 || group == nobody) return;
    group_by_subscribers_.erase(entry.subscribers);
    entry.subscribers.clear();
    free_groups_.push_back(static_cast<std::uint32_t>(group));
}

} // namespace netio::pubsub::inline v0_2
