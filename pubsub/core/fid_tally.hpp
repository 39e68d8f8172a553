// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of each fid, how often something has befallen its messages that seldom does: one was missed, or
// refused. It costs nothing as long as it does not happen. No I/O.

#include "pubsub/core/fid_map.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_2 {

class FidTally {
  public:
    void add(Fid fid) { ++counts_[fid]; }
    std::uint64_t of(Fid fid) const noexcept {
        const std::uint64_t* const count = counts_.find(fid);
        return count != nullptr ? *count : 0;
    }

  private:
    FidMap<std::uint64_t> counts_;
};

} // namespace netio::pubsub::inline v0_2
