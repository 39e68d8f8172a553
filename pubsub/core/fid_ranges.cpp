// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

// The index of the first range at or after `at` that does not end before `fid`. Galloping search:
// the cost grows with the logarithm of the distance, so that a short set is cheap to intersect with
// a long one.
std::size_t seek(std::span<const FidRange> set, std::size_t at, Fid fid, std::size_t& steps) {
    std::size_t reach = 1;
    while (at + reach < set.size() && set[at + reach - 1].last < fid) {
        at += reach;
        reach *= 2;
        ++steps;
    }
    std::size_t end = std::min(at + reach, set.size());
    while (at < end) {
        const std::size_t middle = at + (end - at) / 2;
        if (set[middle].last < fid) {
            at = middle + 1;
        } else {
            end = middle;
        }
        ++steps;
    }
    return at;
}

} // namespace

std::vector<FidRange> normalised(std::span<const FidRange> ranges) {
    std::vector<FidRange> sorted{ranges.begin(), ranges.end()};
    if (!std::ranges::is_sorted(sorted, {}, &FidRange::first))
        std::ranges::sort(sorted, {}, &FidRange::first);
    std::vector<FidRange> set;
    for (const FidRange& range : sorted) {
        // Compared without the successor of `last`, which the largest fid does not have.
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

bool contains(std::span<const FidRange> set, Fid fid) {
    const auto after = std::ranges::upper_bound(set, fid, {}, &FidRange::first);
    return after != set.begin() && contains(*std::prev(after), fid);
}

std::size_t count_fids(std::span<const FidRange> set, std::size_t limit) {
    std::size_t count = 0;
    for (const FidRange& range : set) {
        // The number of all fids, 2^64, does not fit into the type.
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        if (width >= limit - count) return limit;
        count += static_cast<std::size_t>(width) + 1;
    }
    return count;
}

std::vector<FidRange> without(std::span<const FidRange> from, std::span<const FidRange> set,
                              std::size_t& steps) {
    std::vector<FidRange> rest;
    std::size_t at = 0;
    for (const FidRange& old : from) {
        ++steps;
        FidRange left = old;
        bool any = true;
        for (at = seek(set, at, old.first, steps); at < set.size() && set[at].first <= old.last;
             ++at) {
            ++steps;
            if (left.first < set[at].first)
                rest.push_back({.first = left.first, .last = Fid{to_integer(set[at].first) - 1}});
            any = set[at].last < old.last;
            if (!any) break; // it may overlap the next one, too
            left.first = Fid{to_integer(set[at].last) + 1};
        }
        if (any) rest.push_back(left);
    }
    return rest;
}

std::vector<FidRange> common(std::span<const FidRange> one, std::span<const FidRange> other,
                             std::size_t& steps) {
    if (other.size() < one.size()) std::swap(one, other);
    std::vector<FidRange> both;
    std::size_t at = 0;
    for (const FidRange& range : one) {
        ++steps;
        for (at = seek(other, at, range.first, steps);
             at < other.size() && other[at].first <= range.last; ++at) {
            ++steps;
            both.push_back({.first = std::max(other[at].first, range.first),
                            .last = std::min(other[at].last, range.last)});
            if (other[at].last >= range.last) break; // it may overlap the next one, too
        }
    }
    return both;
}

} // namespace netio::pubsub::inline v0_3
