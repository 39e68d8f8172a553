// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a slow subscriber has missed and has not been told yet, per fid. No I/O.

#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/frames.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class GapLedger {
  public:
    void add(Fid fid, std::uint64_t count) { missed_[fid] += count; }
    // Adds all counts of the other ledger, which is empty afterwards. Costs the smaller of the two.
    void merge(GapLedger& other) {
        if (missed_.size() < other.missed_.size()) std::swap(missed_, other.missed_);
        other.missed_.for_each([this](Fid fid, std::uint64_t count) { add(fid, count); });
        other.missed_.clear();
    }
    bool empty() const noexcept { return missed_.empty(); }
    std::size_t size() const noexcept { return missed_.size(); }

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
