// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets of fids as lists of ranges (disjoint, not adjacent, ascending), and a map from such ranges
// to values. No I/O.

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_map.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

inline constexpr Fid last_fid{UINT64_MAX};

// The set of all fids in any of the ranges.
std::vector<FidRange> normalised(std::span<const FidRange> ranges);
// The fids of the set `from` that are not in `range`.
std::vector<FidRange> without(std::span<const FidRange> from, const FidRange& range);
// Whether a fid is in a set. Neighbouring ranges of the set may touch.
bool contains(std::span<const FidRange> set, Fid fid);
// The number of fids of a set; `limit` if it has more.
std::size_t count_fids(std::span<const FidRange> set, std::size_t limit);

// The difference and the intersection of two sets, whose neighbouring ranges may touch. Each
// examines a range of either set a few times at most, and adds the number of examinations to
// `steps`.
std::vector<FidRange> without(std::span<const FidRange> from, std::span<const FidRange> set,
                              std::size_t& steps);
std::vector<FidRange> common(std::span<const FidRange> one, std::span<const FidRange> other,
                             std::size_t& steps);

// Calls visit(fid, value) for each entry of a map whose fid is in the set, in no order. It examines
// either the fids of the set or the slots of the map, whichever are fewer. That is decided for the
// whole set, because each range alone may be as wide as the map is large. Adds the number of
// examinations to `steps`.
template <typename Value, typename Visit>
void visit_within(const FidMap<Value>& map, std::span<const FidRange> set, std::size_t& steps,
                  Visit visit) {
    const std::size_t fids = count_fids(set, map.places());
    steps += fids;
    if (fids == map.places()) {
        map.for_each([&](Fid fid, const Value& value) {
            if (contains(set, fid)) visit(fid, value);
        });
        return;
    }
    for (const FidRange& range : set) {
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        for (std::uint64_t i = 0; i <= width; ++i) {
            const Fid fid{to_integer(range.first) + i};
            if (const Value* const value = map.find(fid)) visit(fid, *value);
        }
    }
}

// Maps disjoint ranges of fids to values. Each call takes logarithmic time plus the size of its
// result. Neighbours of equal value become one range.
template <typename Value>
class FidRangeMap {
  public:
    struct Piece {
        FidRange range;
        Value value{};

        friend bool operator==(const Piece&, const Piece&) = default;
    };

    // Replaces earlier values in the range.
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

    // The entries that overlap a range, cut to it, ascending.
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
    // Cuts the range that has this fid and the one before it into two.
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

} // namespace netio::pubsub::inline v0_3

// Counts of many fids that seldom change and are seldom looked up, in little memory: if fids are
// close together, an entry takes two bytes plus the digits of its count. No I/O.
//
// The counts are stored in runs, sorted by fid and compressed. Each call of add() creates a run.
// Runs of about the same length are merged, so there are few runs, and an entry is seldom copied.

namespace netio::pubsub::inline v0_3 {

class FidCountStore {
  public:
    // Different fids, ascending. These counts replace those of the same fids.
    void add(std::span<const FidCount> counts);
    // Returns 0 if there is no count.
    std::uint64_t find(Fid fid) const noexcept;

    // Memory in use.
    std::size_t bytes() const noexcept;

  private:
    static constexpr std::size_t block_entries = 32;
    struct Block {
        Fid first{};
        std::uint64_t offset = 0; // of its first count
    };
    struct Run {
        std::size_t size = 0;
        std::vector<Block> blocks; // where a search begins
        std::vector<std::uint8_t> entries;
    };
    static Run encoded(std::span<const FidCount> counts);
    static std::vector<FidCount> decoded(const Run& run);
    static std::vector<FidCount> merged(const Run& older, const Run& newer);
    static std::optional<std::uint64_t> find_in(const Run& run, Fid fid) noexcept;
    template <typename Visit>
    static void visit_block(const Run& run, std::size_t block, Visit visit);

    std::vector<Run> runs_; // the newest last; each has more than twice as many counts as the next
};

} // namespace netio::pubsub::inline v0_3

// The fids that are displayed, up to a limit: the first ones, which then stay the same, so that no
// time series ends. Their values are summed for each snapshot; further fids, even a million, cost
// nothing. No I/O.
//
//     shown.begin_listing(1000);
//     shown.add(counts, [](Row& sum, Fid, std::uint64_t count) { sum.messages += count; });
//     std::vector<Row> rows = shown.rows();

namespace netio::pubsub::inline v0_3 {

// Row must have a member `fid`.
template <typename Row>
class ShownFids {
  public:
    void begin_listing(std::size_t limit) noexcept {
        limit_ = limit;
        sums_.for_each([](Fid, Row& sum) { sum = {}; });
    }
    // Calls take(row, fid, value) for each shown fid of the map.
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
                if (Row* const sum = sums_.find(fid)) take(*sum, fid, value);
            });
        }
        sums_.for_each([&](Fid fid, Row& sum) {
            if (const Value* const value = values.find(fid)) take(sum, fid, *value);
        });
    }
    // In ascending order.
    std::vector<Row> rows() const {
        std::vector<Row> all;
        all.reserve(sums_.size());
        sums_.for_each([&](Fid fid, Row sum) {
            sum.fid = fid;
            all.push_back(sum);
        });
        std::ranges::sort(all, {}, &Row::fid);
        all.resize(std::min(all.size(), limit_));
        return all;
    }
    // Whether further fids may exist.
    bool is_full() const noexcept { return sums_.size() >= limit_; }

  private:
    FidMap<Row> sums_;
    std::size_t limit_ = 0;
};

} // namespace netio::pubsub::inline v0_3
