// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_count_store.hpp"

#include <algorithm>
#include <iterator>

namespace netio::pubsub::inline v0_3 {
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
