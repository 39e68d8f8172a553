// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides fids among several loops or processes: each has a shard of the fids, and no fid belongs
// to two shards. A plain value; no I/O.
//
//     const auto shards = pubsub::FidShards::divide({{Fid{0}, Fid{63}}}, 2);
//     const std::vector<pubsub::FidRange>& fids = shards.of(0); // Publisher::Options::fids there
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
    // Divides the fids into `count` shards of consecutive fids, of the same size as far as
    // possible; the first ones may have one more. Throws std::invalid_argument if count is 0.
    static FidShards divide(std::span<const FidRange> fids, std::size_t count);
    static FidShards divide(std::initializer_list<FidRange> fids, std::size_t count) {
        return divide(std::span{fids.begin(), fids.size()}, count);
    }
    // Creates a shard for each list. Throws std::invalid_argument if two lists contain the same
    // fid, or if a range ends before it begins.
    explicit FidShards(std::span<const std::vector<FidRange>> shards);

    std::size_t count() const noexcept { return shards_.size(); }
    // Returns nullopt if the fid is in no shard.
    std::optional<std::size_t> owner(Fid fid) const;
    // Disjoint, not adjacent, ascending.
    const std::vector<FidRange>& of(std::size_t shard) const { return shards_.at(shard); }

  private:
    std::vector<std::vector<FidRange>> shards_;
    FidRangeMap<std::size_t> owners_;
};

} // namespace netio::pubsub::inline v0_3
