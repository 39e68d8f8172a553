// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a slow subscriber has missed and has not been told yet, per fid. No I/O.

#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/frames.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class GapLedger {
  public:
    void add(Fid fid, std::uint64_t count) { missed_[fid] += count; }
    bool empty() const noexcept { return missed_.empty(); }

    // Takes out all entries, in the order of the fids.
    std::vector<FidCount> take() {
        std::vector<FidCount> counts;
        counts.reserve(missed_.size());
        missed_.for_each(
            [&](Fid fid, std::uint64_t count) { counts.push_back({.fid = fid, .count = count}); });
        missed_.clear();
        std::ranges::sort(counts, {}, &FidCount::fid);
        return counts;
    }

  private:
    FidMap<std::uint64_t> missed_;
};

} // namespace netio::pubsub::inline v0_2
