// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_listing.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace netio::pubsub::inline v0_2 {
namespace {

std::optional<FidRange> common(const FidRange& one, const FidRange& other) {
    const FidRange both{.first = std::max(one.first, other.first),
                        .last = std::min(one.last, other.last)};
    if (both.last < both.first) return {};
    return both;
}

// Without those that end below the fid.
std::span<const FidRange> from(std::span<const FidRange> ranges, Fid fid) {
    const auto first = std::ranges::partition_point(
        ranges, [&](const FidRange& range) { return range.last < fid; });
    return ranges.subspan(static_cast<std::size_t>(first - ranges.begin()));
}

// The nearest that begins below the fid.
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
    Fid next = first; // what begins here or later is missing yet
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

} // namespace netio::pubsub::inline v0_2
