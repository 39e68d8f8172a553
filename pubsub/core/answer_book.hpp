// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who waits for the answer to which subscription: it is accepted when each of its fids is, by
// whomever, and refused with the first that is; nobody waits beyond his time. No I/O, no threads.

#include "netio/base/time.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

template <typename Waiter>
class AnswerBook {
  public:
    // So many may wait.
    explicit AnswerBook(std::size_t limit = SIZE_MAX) noexcept : limit_{limit} {}

    bool is_full() const noexcept { return waiting_.size() >= limit_; }
    // Waits until `end` at most. Who asks for no fids, or beyond the limit, is none of this book's.
    void add(std::span<const FidRange> fids, Waiter waiter, TimePoint end = TimePoint::max()) {
        waiting_.push_back({.open = normalised(fids), .waiter = std::move(waiter), .end = end});
    }
    // Those that have their answer now.
    std::vector<Waiter> accept(const FidRange& fids) {
        for (Entry& entry : waiting_)
            if (entry.touches(fids)) entry.open = without(entry.open, fids);
        return take([](const Entry& entry) { return entry.open.empty(); });
    }
    // Those that wait for any of them: refused, or not wanted any more.
    std::vector<Waiter> end(const FidRange& fids) {
        return take([&](const Entry& entry) { return entry.touches(fids); });
    }
    // Those whose time is over.
    std::vector<Waiter> expire(TimePoint now) {
        return take([&](const Entry& entry) { return entry.end <= now; });
    }
    // When the first of them is to be dropped.
    TimePoint next_end() const noexcept {
        TimePoint first = TimePoint::max();
        for (const Entry& entry : waiting_)
            first = std::min(first, entry.end);
        return first;
    }
    std::vector<Waiter> take_all() {
        return take([](const Entry&) { return true; });
    }

  private:
    struct Entry {
        std::vector<FidRange> open; // not accepted yet
        Waiter waiter;
        TimePoint end;

        bool touches(const FidRange& fids) const {
            return std::ranges::any_of(open, [&](const FidRange& each) {
                return each.first <= fids.last && fids.first <= each.last;
            });
        }
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

    std::size_t limit_;
    std::vector<Entry> waiting_;
};

} // namespace netio::pubsub::inline v0_2
