// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who waits for the answer to which subscription: it is accepted when each of its fids is, by
// whomever, and refused with the first that is. No I/O, no threads.

#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

template <typename Waiter>
class AnswerBook {
  public:
    void add(std::span<const FidRange> fids, Waiter waiter) {
        waiting_.push_back({.open = normalised(fids), .waiter = std::move(waiter)});
    }
    // Those that have their answer now.
    std::vector<Waiter> accept(const FidRange& fids) {
        for (Entry& entry : waiting_)
            entry.open = without(entry.open, fids);
        return take([](const Entry& entry) { return entry.open.empty(); });
    }
    std::vector<Waiter> refuse(const FidRange& fids) {
        return take([&](const Entry& entry) {
            return std::ranges::any_of(entry.open, [&](const FidRange& open) {
                return open.first <= fids.last && fids.first <= open.last;
            });
        });
    }
    std::vector<Waiter> take_all() {
        return take([](const Entry&) { return true; });
    }

  private:
    struct Entry {
        std::vector<FidRange> open; // not accepted yet
        Waiter waiter;
    };
    template <typename Has>
    std::vector<Waiter> take(Has has_answer) {
        std::vector<Waiter> taken;
        const auto end = std::stable_partition(
            waiting_.begin(), waiting_.end(), [&](const Entry& each) { return !has_answer(each); });
        for (auto at = end; at != waiting_.end(); ++at)
            taken.push_back(std::move(at->waiter));
        waiting_.erase(end, waiting_.end());
        return taken;
    }

    std::vector<Entry> waiting_;
};

} // namespace netio::pubsub::inline v0_2
