// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fids under which a publish socket has published, as ranges: what a peer may ask for. A peer
// decides how often it asks, so the ranges are made anew only after fids were added, and not more
// often than the caller allows. No I/O, no clock.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// A part of the list, as one frame carries it: ascending, disjoint.
struct FidPage {
    std::vector<FidRange> ranges;
    bool more = false; // there are more behind the last one
};

class FidListing {
  public:
    // Whether it was made from fewer fids.
    bool is_outdated(std::size_t fid_count) const noexcept { return made_from_ != fid_count; }
    // From a map of all fids.
    template <typename Value>
    void make(const FidMap<Value>& fids) {
        std::vector<Fid> list;
        list.reserve(fids.size());
        fids.for_each([&](Fid fid, const Value&) { list.push_back(fid); });
        make(std::move(list));
    }

    // Up to `limit` ranges of those in `permitted` (ascending, disjoint): first the nearest one
    // that begins below `first`, then those from there on.
    FidPage page(Fid first, std::size_t limit, std::span<const FidRange> permitted) const;

  private:
    void make(std::vector<Fid> fids);

    std::vector<FidRange> ranges_;
    std::size_t made_from_ = 0;
};

} // namespace netio::pubsub::inline v0_2
