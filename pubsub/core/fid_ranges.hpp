// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets of fids as lists of ranges: disjoint, not adjacent, ascending. No I/O.

#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Any ranges as such a set.
std::vector<FidRange> normalised(std::span<const FidRange> ranges);
// The fids of `from` (such a set) that are not in `range`.
std::vector<FidRange> without(std::span<const FidRange> from, const FidRange& range);

// Of two such sets; neighbours may touch. Each looks at a range of either a few times at most, and
// adds to `steps` how often it did.
std::vector<FidRange> without(std::span<const FidRange> from, std::span<const FidRange> set,
                              std::size_t& steps);
std::vector<FidRange> common(std::span<const FidRange> one, std::span<const FidRange> other,
                             std::size_t& steps);

} // namespace netio::pubsub::inline v0_2
