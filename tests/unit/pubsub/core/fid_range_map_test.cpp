// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_range_map.hpp"

#include <gmock/gmock.h>

#include <array>
#include <optional>
#include <random>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using Map = FidRangeMap<int>;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

TEST(FidRangeMap, NeighboursOfEqualValueAreOneRange) {
    Map map;
    map.assign(range(0, 3), 1);
    map.assign(range(8, 9), 1);
    map.assign(range(4, 7), 1);
    EXPECT_THAT(map.pieces(range(0, 100)), ElementsAre(Map::Piece{range(0, 9), 1}));
    map.assign(range(4, 5), 2);
    EXPECT_EQ(map.size(), 3U);
    EXPECT_THAT(map.pieces(range(5, 6)),
                ElementsAre(Map::Piece{range(5, 5), 2}, Map::Piece{range(6, 6), 1}));
}

TEST(FidRangeMap, TakesTheWholeRangeOfFids) {
    Map map;
    const FidRange all = range(0, UINT64_MAX);
    EXPECT_THAT(map.absent(all), ElementsAre(all));
    map.assign(all, 1);
    map.assign(range(UINT64_MAX, UINT64_MAX), 2);
    EXPECT_EQ(*map.find(Fid{UINT64_MAX}), 2);
    EXPECT_EQ(*map.find(Fid{UINT64_MAX - 1}), 1);
    EXPECT_TRUE(map.absent(all).empty());
    map.erase(all);
    EXPECT_TRUE(map.empty());
}

TEST(FidRangeMap, AgreesWithAPlainArray) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random{seed};
        Map map;
        std::array<std::optional<int>, 20> plain;
        const auto any_range = [&] {
            const std::uint64_t first = random() % plain.size();
            return range(first, first + random() % (plain.size() - first));
        };
        for (int step = 0; step < 60; ++step) {
            const FidRange changed = any_range();
            const auto value = static_cast<int>(random() % 3);
            for (auto fid = to_integer(changed.first); fid <= to_integer(changed.last); ++fid)
                plain[fid] = value == 0 ? std::nullopt : std::optional{value};
            value == 0 ? map.erase(changed) : map.assign(changed, value);

            const FidRange looked = any_range();
            std::array<std::optional<int>, 20> found;
            std::array<bool, 20> absent{};
            for (const Map::Piece& piece : map.pieces(looked))
                for (auto fid = to_integer(piece.range.first); fid <= to_integer(piece.range.last);
                     ++fid)
                    found[fid] = piece.value;
            for (const FidRange& hole : map.absent(looked))
                for (auto fid = to_integer(hole.first); fid <= to_integer(hole.last); ++fid)
                    absent[fid] = true;
            for (std::uint64_t fid = 0; fid < plain.size(); ++fid) {
                const bool inside = contains(looked, Fid{fid});
                const int* const at = map.find(Fid{fid});
                ASSERT_EQ(at != nullptr ? std::optional{*at} : std::nullopt, plain[fid]) << seed;
                ASSERT_EQ(found[fid], inside ? plain[fid] : std::nullopt) << seed;
                ASSERT_EQ(absent[fid], inside && !plain[fid]) << seed;
            }
        }
    }
}

} // namespace
} // namespace netio::pubsub
