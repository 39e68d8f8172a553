// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values of ranges of fids: disjoint ranges, each with one; every call takes logarithmic time and
// what it finds. Neighbours of equal value become one range. No I/O.

#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <vector>

namespace netio::pubsub::inline v0_2 {

template <typename Value>
class FidRangeMap {
  public:
    struct Piece {
        FidRange range;
        Value value{};

        friend bool operator==(const Piece&, const Piece&) = default;
    };

    // Whatever was there before.
    void assign(const FidRange& range, const Value& value) {
        erase(range);
        FidRange whole = range;
        auto after = ranges_.lower_bound(range.first);
        if (after != ranges_.end() && is_next(range.last, after->first) &&
            after->second.value == value) {
            whole.last = after->second.last;
            after = ranges_.erase(after);
        }
        if (after != ranges_.begin()) {
            const auto before = std::prev(after);
            if (is_next(before->second.last, range.first) && before->second.value == value) {
                before->second.last = whole.last;
                return;
            }
        }
        ranges_.emplace_hint(after, whole.first, Held{.last = whole.last, .value = value});
    }

    void erase(const FidRange& range) {
        split_at(range.first);
        if (range.last != last_fid) split_at(Fid{to_integer(range.last) + 1});
        auto at = ranges_.lower_bound(range.first);
        while (at != ranges_.end() && at->first <= range.last)
            at = ranges_.erase(at);
    }

    const Value* find(Fid fid) const {
        const auto after = ranges_.upper_bound(fid);
        if (after == ranges_.begin()) return nullptr;
        const Held& held = std::prev(after)->second;
        return fid <= held.last ? &held.value : nullptr;
    }

    // What there is of a range, cut to it, ascending.
    std::vector<Piece> pieces(const FidRange& range) const {
        std::vector<Piece> list;
        for (auto at = first_in(range); at != ranges_.end() && at->first <= range.last; ++at) {
            list.push_back({.range = {.first = std::max(at->first, range.first),
                                      .last = std::min(at->second.last, range.last)},
                            .value = at->second.value});
        }
        return list;
    }
    // The parts of a range that have no value, ascending.
    std::vector<FidRange> absent(const FidRange& range) const {
        std::vector<FidRange> list;
        Fid next = range.first;
        for (auto at = first_in(range); at != ranges_.end() && at->first <= range.last; ++at) {
            if (next < at->first)
                list.push_back({.first = next, .last = Fid{to_integer(at->first) - 1}});
            if (at->second.last >= range.last) return list;
            next = Fid{to_integer(at->second.last) + 1};
        }
        list.push_back({.first = next, .last = range.last});
        return list;
    }

    // Calls visit(range, value) for each, ascending.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const auto& [first, held] : ranges_)
            visit(FidRange{.first = first, .last = held.last}, held.value);
    }

    std::size_t size() const noexcept { return ranges_.size(); } // ranges
    bool empty() const noexcept { return ranges_.empty(); }
    void clear() noexcept { ranges_.clear(); }

  private:
    struct Held {
        Fid last{};
        Value value{};
    };
    using Ranges = std::map<Fid, Held>; // by the first fid

    static constexpr bool is_next(Fid fid, Fid other) noexcept {
        return fid != last_fid && to_integer(fid) + 1 == to_integer(other);
    }
    typename Ranges::const_iterator first_in(const FidRange& range) const {
        auto at = ranges_.upper_bound(range.first);
        if (at != ranges_.begin() && std::prev(at)->second.last >= range.first) --at;
        return at;
    }
    // A range that goes over this fid becomes two.
    void split_at(Fid fid) {
        auto at = ranges_.lower_bound(fid);
        if (at == ranges_.begin()) return;
        --at;
        if (at->second.last < fid) return;
        const Held rest = at->second;
        at->second.last = Fid{to_integer(fid) - 1};
        ranges_.emplace(fid, rest);
    }

    Ranges ranges_;
};

} // namespace netio::pubsub::inline v0_2
