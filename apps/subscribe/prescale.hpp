// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which messages a subscriber works on that wants a part of them only: the first of each fid, and
// from then on every N-th. No I/O.

#include "pubsub/core/fid_map.hpp"

#include <cstdint>

namespace apps::subscribe {

class Prescale {
  public:
    explicit Prescale(std::uint64_t every) noexcept : every_{every} {}

    bool takes(netio::pubsub::Fid fid) {
        if (every_ == 1) return true;
        const bool taken = seen_[fid]++ % every_ == 0;
        passed_over_ += taken ? 0 : 1;
        return taken;
    }
    std::uint64_t passed_over() const noexcept { return passed_over_; }

  private:
    std::uint64_t every_;
    netio::pubsub::FidMap<std::uint64_t> seen_; // as many as the subscriber keeps accounts of
    std::uint64_t passed_over_ = 0;
};

} // namespace apps::subscribe
