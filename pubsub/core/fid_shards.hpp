// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of several loops, or processes, a fid belongs to: each has a shard of the space of fids,
// and no fid has two. Values in, values out; no I/O.
//
//     const auto shards = pubsub::FidShards::divide({{Fid{0}, Fid{63}}}, 2);
//     const std::vector<pubsub::FidRange>& fids = shards.of(0); // Publisher::Options::owned there
//     const std::optional<std::size_t> owner = shards.owner(Fid{7}); // where Fid{7} is published

#include "netio/base/export.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class NETIO_EXPORT FidShards {
  public:
    // Consecutive fids to each of `count` shards, as many to one as to another; where that leaves a
    // remainder, the first ones have one more. Throws std::invalid_argument: no shard.
    static FidShards divide(std::span<const FidRange> fids, std::size_t count);
    static FidShards divide(std::initializer_list<FidRange> fids, std::size_t count) {
        return divide(std::span{fids.begin(), fids.size()}, count);
    }
    // A shard for each list. Throws std::invalid_argument: two have the same fid, or a range ends
    // before it begins.
    explicit FidShards(std::span<const std::vector<FidRange>> shards);

    std::size_t count() const noexcept { return shards_.size(); }
    // Nothing: nobody's.
    std::optional<std::size_t> owner(Fid fid) const;
    // Disjoint, not adjacent, ascending.
    const std::vector<FidRange>& of(std::size_t shard) const { return shards_.at(shard); }

  private:
    std::vector<std::vector<FidRange>> shards_;
    FidRangeMap<std::size_t> owners_;
};

} // namespace netio::pubsub::inline v0_3
