// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fids that are displayed, up to a limit: the first ones, which then stay the same, so that no
// time series ends. Their values are summed for each snapshot; further fids, even a million, cost
// nothing. No I/O.
//
//     shown.begin_look(1000);
//     shown.add(counts, [](Figures& sum, Fid, std::uint64_t count) { sum.messages += count; });
//     std::vector<Figures> rows = shown.figures();

#include "pubsub/core/fid_map.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Figures must have a member `fid`.
template <typename Figures>
class ShownFids {
  public:
    void begin_look(std::size_t limit) noexcept {
        limit_ = limit;
        sums_.for_each([](Fid, Figures& sum) { sum = {}; });
    }
    // Calls take(figures, fid, value) for each shown fid of the map.
    template <typename Value, typename Take>
    void add(const FidMap<Value>& values, Take take) {
        if (!is_full()) {
            values.visit_places(0, values.places(), [this](Fid fid, const Value&) {
                sums_[fid];
                return !is_full();
            });
        }
        // Iterates over the smaller of the two.
        if (values.size() <= sums_.size()) {
            return values.for_each([&](Fid fid, const Value& value) {
                if (Figures* const sum = sums_.find(fid)) take(*sum, fid, value);
            });
        }
        sums_.for_each([&](Fid fid, Figures& sum) {
            if (const Value* const value = values.find(fid)) take(sum, fid, *value);
        });
    }
    // In ascending order.
    std::vector<Figures> figures() const {
        std::vector<Figures> all;
        all.reserve(sums_.size());
        sums_.for_each([&](Fid fid, Figures sum) {
            sum.fid = fid;
            all.push_back(sum);
        });
        std::ranges::sort(all, {}, &Figures::fid);
        all.resize(std::min(all.size(), limit_));
        return all;
    }
    // Whether further fids may exist.
    bool is_full() const noexcept { return sums_.size() >= limit_; }

  private:
    FidMap<Figures> sums_;
    std::size_t limit_ = 0;
};

} // namespace netio::pubsub::inline v0_3
