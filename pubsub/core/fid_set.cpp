// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_set.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace netio::inline v0_3 {

FidSet::FidSet(std::initializer_list<FidRange> ranges)
    : FidSet{std::span<const FidRange>{ranges.begin(), ranges.size()}} {}

FidSet::FidSet(std::span<const FidRange> ranges) {
    for (const FidRange& range : ranges)
        add(range);
}

FidSet& FidSet::add(const FidRange& range) {
    if (range.last < range.first) {
        throw std::invalid_argument{"a range of fids ends before it begins: " + to_string(range)};
    }
    // The ranges that overlap or touch it. Written so that the last fid needs no successor.
    const auto begin = std::ranges::partition_point(ranges_, [&](const FidRange& each) {
        return each.last < range.first && each.last.value() + 1 < range.first.value();
    });
    const auto end = std::partition_point(begin, ranges_.end(), [&](const FidRange& each) {
        return each.first <= range.last || each.first.value() - 1 == range.last.value();
    });
    FidRange joined = range;
    if (begin != end) {
        joined.first = std::min(joined.first, begin->first);
        joined.last = std::max(joined.last, std::prev(end)->last);
    }
    ranges_.insert(ranges_.erase(begin, end), joined);
    return *this;
}

bool FidSet::contains(Fid fid) const noexcept {
    const auto at = std::ranges::lower_bound(ranges_, fid, {}, &FidRange::last);
    return at != ranges_.end() && at->first <= fid;
}

} // namespace netio::inline v0_3
