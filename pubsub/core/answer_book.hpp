// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who waits for the answer to which subscription: it is accepted when each of its fids is, by
// whomever, and refused with the first that is; nobody waits beyond his time. No I/O, no threads.

#include "netio/base/time.hpp"
#include "pubsub/core/fid_set.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Each call costs the logarithm of what waits, and what it finds: so many may wait that who looks
// at all of them for each answer would hold the loop up.
template <typename Waiter>
class AnswerBook {
  public:
    // So many may wait.
    explicit AnswerBook(std::size_t limit = SIZE_MAX) noexcept : limit_{limit} {}

    bool is_full() const noexcept { return waiting_.size() >= limit_; }
    // Waits until `end` at most. Who asks for no fids, or beyond the limit, is none of this book's.
    void add(std::span<const FidRange> fids, Waiter waiter, TimePoint end = TimePoint::max()) {
        const std::uint64_t number = ++last_number_;
        Entry& entry = waiting_
                           .emplace(number, Entry{.open = {},
                                                  .waiter = std::move(waiter),
                                                  .end = ends_.emplace(end, number)})
                           .first->second;
        for (const FidRange& range : normalised(fids))
            open(number, entry, range);
    }
    // Those that have their answer now, in the order in which they came; so it is of all others.
    std::vector<Waiter> accept(const FidRange& fids) {
        std::vector<std::uint64_t> accepted;
        for (const Item& item : overlapping(fids)) {
            Entry& entry = waiting_.at(item.number);
            close(item, entry);
            if (item.range.first < fids.first)
                open(item.number, entry, {item.range.first, Fid{to_integer(fids.first) - 1}});
            if (fids.last < item.range.last)
                open(item.number, entry, {Fid{to_integer(fids.last) + 1}, item.range.last});
            if (entry.open.empty()) accepted.push_back(item.number);
        }
        return take(std::move(accepted));
    }
    // Those that wait for any of them: refused, or not wanted any more.
    std::vector<Waiter> end(const FidRange& fids) {
        std::vector<std::uint64_t> ended;
        for (const Item& item : overlapping(fids))
            ended.push_back(item.number);
        return take(std::move(ended));
    }
    // Those whose time is over.
    std::vector<Waiter> expire(TimePoint now) {
        std::vector<std::uint64_t> over;
        for (auto next = ends_.begin(); next != ends_.end() && next->first <= now; ++next)
            over.push_back(next->second);
        return take(std::move(over));
    }
    // When the first of them is to be dropped.
    TimePoint next_end() const noexcept {
        return ends_.empty() ? TimePoint::max() : ends_.begin()->first;
    }
    std::vector<Waiter> take_all() { return expire(TimePoint::max()); }
    // How many ranges accept() and end() have looked at so far: what they have cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    using Ends = std::multimap<TimePoint, std::uint64_t>;
    struct Entry {
        std::map<Fid, Fid> open; // ranges that are not accepted yet
        Waiter waiter;
        Ends::iterator end;
    };
    struct Item {
        FidRange range;
        std::uint64_t number = 0; // of its entry
    };
    using Starts = std::set<std::pair<Fid, std::uint64_t>>;

    // Ranges of about the same length lie together, so that those that reach into another one are
    // near its beginning.
    static std::size_t place_of(const FidRange& range) noexcept {
        return static_cast<std::size_t>(
            std::bit_width(to_integer(range.last) - to_integer(range.first)));
    }
    void open(std::uint64_t number, Entry& entry, const FidRange& range) {
        entry.open.emplace(range.first, range.last);
        starts_[place_of(range)].emplace(range.first, number);
    }
    void close(const Item& item, Entry& entry) {
        entry.open.erase(item.range.first);
        starts_[place_of(item.range)].erase({item.range.first, item.number});
    }
    std::vector<Item> overlapping(const FidRange& fids) {
        std::vector<Item> found;
        for (std::size_t place = 0; place < starts_.size(); ++place) {
            const Starts& starts = starts_[place];
            if (starts.empty()) continue;
            const std::uint64_t longest = place < 64 ? (std::uint64_t{1} << place) - 1 : UINT64_MAX;
            const std::uint64_t first = to_integer(fids.first);
            const Fid begin{first > longest ? first - longest : 0};
            ++steps_;
            for (auto at = starts.lower_bound({begin, 0}); at != starts.end(); ++at) {
                ++steps_;
                if (fids.last < at->first) break;
                const Fid last = waiting_.at(at->second).open.at(at->first);
                if (fids.first <= last)
                    found.push_back({.range = {at->first, last}, .number = at->second});
            }
        }
        return found;
    }
    std::vector<Waiter> take(std::vector<std::uint64_t> numbers) {
        std::ranges::sort(numbers);
        std::vector<Waiter> taken;
        for (const std::uint64_t number : numbers) {
            const auto found = waiting_.find(number);
            if (found == waiting_.end()) continue; // it was found twice
            Entry& entry = found->second;
            for (const auto& [first, last] : entry.open)
                starts_[place_of({first, last})].erase({first, number});
            ends_.erase(entry.end);
            taken.push_back(std::move(entry.waiter));
            waiting_.erase(found);
        }
        return taken;
    }

    std::size_t limit_;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, Entry> waiting_; // by number: in the order in which they came
    Ends ends_;
    std::array<Starts, 65> starts_; // of all that is open
    std::size_t steps_ = 0;
};

} // namespace netio::pubsub::inline v0_2
