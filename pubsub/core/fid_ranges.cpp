// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

// The index of the first range at or after `at` that does not end before `fid`. Galloping search:
// the cost grows with the logarithm of the distance, so that a short set is cheap to intersect with
// a long one.
std::size_t seek(std::span<const FidRange> set, std::size_t at, Fid fid, std::size_t& steps) {
    std::size_t reach = 1;
    while (at + reach < set.size() && set[at + reach - 1].last < fid) {
        at += reach;
        reach *= 2;
        ++steps;
    }
    std::size_t end = std::min(at + reach, set.size());
    while (at < end) {
        const std::size_t middle = at + (end - at) / 2;
        if (set[middle].last < fid) {
            at = middle + 1;
        } else {
            end = middle;
        }
        ++steps;
    }
    return at;
}

} // namespace

std::vector<FidRange> normalised(std::span<const FidRange> ranges) {
    std::vector<FidRange> sorted{ranges.begin(), ranges.end()};
    if (!std::ranges::is_sorted(sorted, {}, &FidRange::first))
        std::ranges::sort(sorted, {}, &FidRange::first);
    std::vector<FidRange> set;
    for (const FidRange& range : sorted) {
        // Compared without the successor of `last`, which the largest fid does not have.
        const bool joins =
            !set.empty() && (range.first <= set.back().last ||
                             to_integer(range.first) - 1 == to_integer(set.back().last));
        if (joins) {
            set.back().last = std::max(set.back().last, range.last);
        } else {
            set.push_back(range);
        }
    }
    return set;
}

std::vector<FidRange> without(std::span<const FidRange> from, const FidRange& range) {
    std::vector<FidRange> rest;
    for (const FidRange& old : from) {
        if (old.last < range.first || range.last < old.first) {
            rest.push_back(old);
            continue;
        }
        if (old.first < range.first) {
            rest.push_back({.first = old.first, .last = Fid{to_integer(range.first) - 1}});
        }
        if (old.last > range.last) {
            rest.push_back({.first = Fid{to_integer(range.last) + 1}, .last = old.last});
        }
    }
    return rest;
}

bool contains(std::span<const FidRange> set, Fid fid) {
    const auto after = std::ranges::upper_bound(set, fid, {}, &FidRange::first);
    return after != set.begin() && contains(*std::prev(after), fid);
}

std::size_t count_fids(std::span<const FidRange> set, std::size_t limit) {
    std::size_t count = 0;
    for (const FidRange& range : set) {
        // The number of all fids, 2^64, does not fit into the type.
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        if (width >= limit - count) return limit;
        count += static_cast<std::size_t>(width) + 1;
    }
    return count;
}

std::vector<FidRange> without(std::span<const FidRange> from, std::span<const FidRange> set,
                              std::size_t& steps) {
    std::vector<FidRange> rest;
    std::size_t at = 0;
    for (const FidRange& old : from) {
        ++steps;
        FidRange left = old;
        bool any = true;
        for (at = seek(set, at, old.first, steps); at < set.size() && set[at].first <= old.last;
             ++at) {
            ++steps;
            if (left.first < set[at].first)
                rest.push_back({.first = left.first, .last = Fid{to_integer(set[at].first) - 1}});
            any = set[at].last < old.last;
            if (!any) break; // it may overlap the next one, too
            left.first = Fid{to_integer(set[at].last) + 1};
        }
        if (any) rest.push_back(left);
    }
    return rest;
}

std::vector<FidRange> common(std::span<const FidRange> one, std::span<const FidRange> other,
                             std::size_t& steps) {
    if (other.size() < one.size()) std::swap(one, other);
    std::vector<FidRange> both;
    std::size_t at = 0;
    for (const FidRange& range : one) {
        ++steps;
        for (at = seek(other, at, range.first, steps);
             at < other.size() && other[at].first <= range.last; ++at) {
            ++steps;
            both.push_back({.first = std::max(other[at].first, range.first),
                            .last = std::min(other[at].last, range.last)});
            if (other[at].last >= range.last) break; // it may overlap the next one, too
        }
    }
    return both;
}

namespace {

// Seven bits per byte, the lowest first; the last byte has its top bit clear.
void append_number(std::vector<std::uint8_t>& bytes, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7)
        bytes.push_back(static_cast<std::uint8_t>(number | 0x80));
    bytes.push_back(static_cast<std::uint8_t>(number));
}

std::uint64_t take_number(const std::vector<std::uint8_t>& bytes, std::size_t& at) noexcept {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        const std::uint8_t byte = bytes[at++];
        number |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) return number;
    }
}

} // namespace

void FidCountStore::add(std::span<const FidCount> counts) {
    if (counts.empty()) return;
    runs_.push_back(encoded(counts));
    while (runs_.size() > 1) {
        const Run& older = *std::prev(runs_.end(), 2);
        if (older.size > 2 * runs_.back().size) return;
        Run both = encoded(merged(older, runs_.back()));
        runs_.pop_back();
        runs_.back() = std::move(both);
    }
}

std::uint64_t FidCountStore::find(Fid fid) const noexcept {
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run)
        if (const auto count = find_in(*run, fid)) return *count;
    return 0;
}

std::size_t FidCountStore::bytes() const noexcept {
    std::size_t sum = runs_.capacity() * sizeof(Run);
    for (const Run& run : runs_)
        sum += run.blocks.capacity() * sizeof(Block) + run.entries.capacity();
    return sum;
}

FidCountStore::Run FidCountStore::encoded(std::span<const FidCount> counts) {
    Run run{.size = counts.size(), .blocks = {}, .entries = {}};
    run.blocks.reserve((counts.size() + block_entries - 1) / block_entries);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (i % block_entries == 0) {
            run.blocks.push_back({.first = counts[i].fid, .offset = run.entries.size()});
        } else {
            append_number(run.entries, to_integer(counts[i].fid) - to_integer(counts[i - 1].fid));
        }
        append_number(run.entries, counts[i].count);
    }
    run.entries.shrink_to_fit();
    return run;
}

// Calls visit(entry) for the entries of a block until it returns false.
template <typename Visit>
void FidCountStore::visit_block(const Run& run, std::size_t block, Visit visit) {
    std::uint64_t fid = to_integer(run.blocks[block].first);
    std::size_t at = run.blocks[block].offset;
    const std::size_t end =
        block + 1 < run.blocks.size() ? run.blocks[block + 1].offset : run.entries.size();
    for (bool first = true; at < end; first = false) {
        if (!first) fid += take_number(run.entries, at);
        if (!visit(FidCount{.fid = Fid{fid}, .count = take_number(run.entries, at)})) return;
    }
}

std::vector<FidCount> FidCountStore::decoded(const Run& run) {
    std::vector<FidCount> counts;
    counts.reserve(run.size);
    for (std::size_t block = 0; block < run.blocks.size(); ++block) {
        visit_block(run, block, [&](const FidCount& each) {
            counts.push_back(each);
            return true;
        });
    }
    return counts;
}

std::vector<FidCount> FidCountStore::merged(const Run& older, const Run& newer) {
    const std::vector<FidCount> olds = decoded(older);
    const std::vector<FidCount> news = decoded(newer);
    std::vector<FidCount> both;
    both.reserve(olds.size() + news.size());
    // For equal fids it takes the entry of the first range.
    std::ranges::set_union(news, olds, std::back_inserter(both), {}, &FidCount::fid,
                           &FidCount::fid);
    return both;
}

std::optional<std::uint64_t> FidCountStore::find_in(const Run& run, Fid fid) noexcept {
    const auto after = std::ranges::upper_bound(run.blocks, fid, {}, &Block::first);
    if (after == run.blocks.begin()) return std::nullopt;
    std::optional<std::uint64_t> found;
    visit_block(run, static_cast<std::size_t>(after - run.blocks.begin()) - 1,
                [&](const FidCount& each) {
                    if (each.fid == fid) found = each.count;
                    return each.fid < fid;
                });
    return found;
}

} // namespace netio::pubsub::inline v0_3
