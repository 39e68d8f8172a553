// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who waits for the answer to which subscription: it is accepted when each of its fids is, by
// whomever, and refused with the first that is; nobody waits beyond his time. No I/O, no threads.

#include "netio/base/time.hpp"
#include "pubsub/core/fid_range_map.hpp"
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
        Entry entry{.open = {}, .waiter = std::move(waiter), .end = end};
        for (const FidRange& range : normalised(fids))
            entry.open.assign(range, {});
        waiting_.push_back(std::move(entry));
    }
    // Those that have their answer now. Each takes logarithmic time, and what is found, so that
    // many ranges that are accepted one by one do not cost the square of them.
    std::vector<Waiter> accept(const FidRange& fids) {
        for (Entry& entry : waiting_) {
            const std::size_t ranges = entry.open.size();
            entry.open.erase(fids);
            steps_ += 1 + ranges - std::min(ranges, entry.open.size());
        }
        return take([](const Entry& entry) { return entry.open.empty(); });
    }
    // Those that wait for any of them: refused, or not wanted any more.
    std::vector<Waiter> end(const FidRange& fids) {
        return take([&](const Entry& entry) { return !entry.open.pieces(fids).empty(); });
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
    // How many ranges accept() has looked at so far: what it has cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    struct Nothing {
        friend bool operator==(Nothing, Nothing) = default;
    };
    struct Entry {
        FidRangeMap<Nothing> open; // not accepted yet
        Waiter waiter;
        TimePoint end;
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
    std::size_t steps_ = 0;
};

} // namespace netio::pubsub::inline v0_2
