// SPDX-License-Identifier: Apache-2.0
#pragma once

// A set of fids: disjoint ranges that are not adjacent, ascending. No I/O.
//
//     const netio::FidSet fids{{0, 63}, {128, 191}, {1000, 1000}};

#include "netio/base/export.hpp"
#include "pubsub/core/fid.hpp"

#include <initializer_list>
#include <span>
#include <vector>

namespace netio::inline v0_3 {

class NETIO_EXPORT FidSet final {
  public:
    FidSet() = default;
    // Throws std::invalid_argument if a range ends before it begins.
    explicit FidSet(std::initializer_list<FidRange> ranges);
    explicit FidSet(std::span<const FidRange> ranges);

    FidSet& add(Fid fid) { return add(FidRange{.first = fid, .last = fid}); }
    FidSet& add(const FidRange& range); // throws as the constructor does

    bool contains(Fid fid) const noexcept;
    bool empty() const noexcept { return ranges_.empty(); }
    std::span<const FidRange> ranges() const noexcept { return ranges_; }

    friend bool operator==(const FidSet&, const FidSet&) = default;

  private:
    std::vector<FidRange> ranges_;
};

} // namespace netio::inline v0_3
