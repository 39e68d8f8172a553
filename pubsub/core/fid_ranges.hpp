// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets of fids as lists of ranges: disjoint, not adjacent, ascending. No I/O.

#include "pubsub/core/fid.hpp"

#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Any ranges as such a set.
std::vector<FidRange> normalised(std::span<const FidRange> ranges);
// The fids of `from` (such a set) that are not in `range`.
std::vector<FidRange> without(std::span<const FidRange> from, const FidRange& range);

} // namespace netio::pubsub::inline v0_2
