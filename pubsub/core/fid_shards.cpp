// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_shards.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace netio::pubsub::inline v0_3 {
namespace {

// The number of fids minus one: 2^64 does not fit into 64 bits.
std::uint64_t last_position(std::span<const FidRange> fids) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < fids.size(); ++i)
        last += to_integer(fids[i].last) - to_integer(fids[i].first) + (i == 0 ? 0 : 1);
    return last;
}

// Removes the first `count` fids from `from` and returns them.
std::vector<FidRange> take_first(std::vector<FidRange>& from, std::uint64_t count) {
    std::vector<FidRange> taken;
    while (count > 0 && !from.empty()) {
        FidRange& front = from.front();
        const std::uint64_t beyond_first = to_integer(front.last) - to_integer(front.first);
        if (beyond_first < count) {
            count -= beyond_first + 1;
            taken.push_back(front);
            from.erase(from.begin());
        } else {
            const Fid next{to_integer(front.first) + count};
            taken.push_back({.first = front.first, .last = Fid{to_integer(next) - 1}});
            front.first = next;
            count = 0;
        }
    }
    return taken;
}

} // namespace

FidShards FidShards::divide(std::span<const FidRange> fids, std::size_t count) {
    if (count == 0) throw std::invalid_argument{"fids must be divided into at least one shard"};
    std::vector<FidRange> left = normalised(fids);
    std::vector<std::vector<FidRange>> shards(count);
    if (count == 1 || left.empty()) {
        shards.front() = std::move(left);
        return FidShards{shards};
    }
    const std::uint64_t last = last_position(left);
    const std::uint64_t remainder = last % count + 1; // up to `count`: then all have one more
    for (std::size_t i = 0; i < count; ++i)
        shards[i] = take_first(left, last / count + (i < remainder ? 1 : 0));
    return FidShards{shards};
}

FidShards::FidShards(std::span<const std::vector<FidRange>> shards) {
    for (std::size_t i = 0; i < shards.size(); ++i) {
        for (const FidRange& range : shards[i]) {
            if (range.last < range.first) {
                throw std::invalid_argument{"a range of fids ends before it begins: " +
                                            to_string(range)};
            }
        }
        shards_.push_back(normalised(shards[i]));
        for (const FidRange& range : shards_.back()) {
            if (const auto shared = owners_.pieces(range); !shared.empty()) {
                throw std::invalid_argument{
                    "fids of two shards: " + to_string(shared.front().range) + ", of shard " +
                    std::to_string(shared.front().value) + " and of " + std::to_string(i)};
            }
            owners_.assign(range, i);
        }
    }
}

std::optional<std::size_t> FidShards::owner(Fid fid) const {
    const std::size_t* const found = owners_.find(fid);
    return found == nullptr ? std::nullopt : std::optional{*found};
}

} // namespace netio::pubsub::inline v0_3
