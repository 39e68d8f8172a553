// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>

namespace netio::pubsub::inline v0_2 {

std::vector<FidRange> normalised(std::span<const FidRange> ranges) {
    std::vector<FidRange> sorted{ranges.begin(), ranges.end()};
    std::ranges::sort(sorted, {}, &FidRange::first);
    std::vector<FidRange> set;
    for (const FidRange& range : sorted) {
        // Written so that the last fid has no successor.
        const bool joins =
            !set.empty() && (range.first <= set.back().last ||
                             to_integer(range.first) - 1 == to_integer(set.back().last));
        if (joins) {
            set.back().last = std::max(set.back().last, range.last);
        } else {
            set.push_back(range);
        }
    }
    return set;
}

std::vector<FidRange> without(std::span<const FidRange> from, const FidRange& range) {
    std::vector<FidRange> rest;
    for (const FidRange& old : from) {
        if (old.last < range.first || range.last < old.first) {
            rest.push_back(old);
            continue;
        }
        if (old.first < range.first) {
            rest.push_back({.first = old.first, .last = Fid{to_integer(range.first) - 1}});
        }
        if (old.last > range.last) {
            rest.push_back({.first = Fid{to_integer(range.last) + 1}, .last = old.last});
        }
    }
    return rest;
}

} // namespace netio::pubsub::inline v0_2
