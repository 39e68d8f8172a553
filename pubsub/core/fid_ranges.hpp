// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets of fids as lists of ranges: disjoint, not adjacent, ascending. No I/O.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

inline constexpr Fid last_fid{UINT64_MAX};

// Any ranges as such a set.
std::vector<FidRange> normalised(std::span<const FidRange> ranges);
// The fids of `from` (such a set) that are not in `range`.
std::vector<FidRange> without(std::span<const FidRange> from, const FidRange& range);
// Whether a fid is in such a set, neighbours of which may touch.
bool contains(std::span<const FidRange> set, Fid fid);
// How many fids such a set has, or `limit` if it has more.
std::size_t count_fids(std::span<const FidRange> set, std::size_t limit);

// Of two such sets; neighbours may touch. Each looks at a range of either a few times at most, and
// adds to `steps` how often it did.
std::vector<FidRange> without(std::span<const FidRange> from, std::span<const FidRange> set,
                              std::size_t& steps);
std::vector<FidRange> common(std::span<const FidRange> one, std::span<const FidRange> other,
                             std::size_t& steps);

// Calls visit(fid, value) for what a map has of the fids of such a set, in no order. It looks at
// the fids of the set or at the places of the map, whichever are fewer: once for all ranges, since
// each of them alone may be as wide as the map is large. Adds to `steps` how many it looked at.
template <typename Value, typename Visit>
void visit_within(const FidMap<Value>& map, std::span<const FidRange> set, std::size_t& steps,
                  Visit visit) {
    const std::size_t fids = count_fids(set, map.places());
    steps += fids;
    if (fids == map.places()) {
        map.for_each([&](Fid fid, const Value& value) {
            if (contains(set, fid)) visit(fid, value);
        });
        return;
    }
    for (const FidRange& range : set) {
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        for (std::uint64_t i = 0; i <= width; ++i) {
            const Fid fid{to_integer(range.first) + i};
            if (const Value* const value = map.find(fid)) visit(fid, *value);
        }
    }
}

} // namespace netio::pubsub::inline v0_2
