// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of each fid, how many messages slow subscribers have missed. It costs nothing as long as nobody
// misses any. No I/O.

#include "pubsub/core/fid_map.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_2 {

class DropAccount {
  public:
    void add(Fid fid) { ++dropped_[fid]; }
    std::uint64_t of(Fid fid) const noexcept {
        const std::uint64_t* const count = dropped_.find(fid);
        return count != nullptr ? *count : 0;
    }

  private:
    FidMap<std::uint64_t> dropped_;
};

} // namespace netio::pubsub::inline v0_2
