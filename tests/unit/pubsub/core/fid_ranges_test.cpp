// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <random>

namespace netio::pubsub::fid_ranges_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

TEST(FidRanges, JoinsWhatOverlapsOrTouches) {
    EXPECT_THAT(normalised(std::vector{range(5, 9), range(0, 3), range(4, 4), range(8, 12)}),
                ElementsAre(range(0, 12)));
    EXPECT_THAT(normalised(std::vector{range(5, 5), range(3, 3)}),
                ElementsAre(range(3, 3), range(5, 5)));
}

TEST(FidRanges, KnowsThatTheLastFidHasNoSuccessor) {
    EXPECT_THAT(normalised(std::vector{range(0, UINT64_MAX), range(0, 0)}),
                ElementsAre(range(0, UINT64_MAX)));
    EXPECT_THAT(without(std::vector{range(0, UINT64_MAX)}, range(0, UINT64_MAX)), IsEmpty());
    EXPECT_THAT(without(std::vector{range(0, UINT64_MAX)}, range(1, UINT64_MAX)),
                ElementsAre(range(0, 0)));
}

using Set = std::bitset<12>;
Set as_set(std::span<const FidRange> ranges) {
    Set set;
    for (const FidRange& each : ranges)
        for (std::uint64_t fid = to_integer(each.first); fid <= to_integer(each.last); ++fid)
            set.set(fid);
    return set;
}

bool is_normal(std::span<const FidRange> ranges) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (ranges[i].last < ranges[i].first) return false;
        if (i > 0 && to_integer(ranges[i].first) <= to_integer(ranges[i - 1].last) + 1)
            return false;
    }
    return true;
}

TEST(FidRanges, AgreeWithSetsOfFids) {
    std::mt19937_64 random{1};
    const auto any_range = [&] {
        const std::uint64_t a = random() % 12;
        const std::uint64_t b = random() % 12;
        return range(std::min(a, b), std::max(a, b));
    };
    for (int round = 0; round < 5000; ++round) {
        std::vector<FidRange> ranges;
        for (std::uint64_t i = random() % 5; i > 0; --i)
            ranges.push_back(any_range());
        const std::vector<FidRange> set = normalised(ranges);
        ASSERT_TRUE(is_normal(set));
        ASSERT_EQ(as_set(set), as_set(ranges));
        const FidRange hole = any_range();
        const std::vector<FidRange> rest = without(set, hole);
        ASSERT_TRUE(is_normal(rest));
        ASSERT_EQ(as_set(rest), as_set(set) & ~as_set(std::vector{hole}));
    }
}

TEST(FidRanges, SetOperationsAgreeWithSetsOfFids) {
    std::mt19937_64 random{2};
    const auto any_set = [&] {
        std::vector<FidRange> ranges;
        for (std::uint64_t i = random() % 6; i > 0; --i) {
            const std::uint64_t first = random() % 12;
            ranges.push_back(range(first, std::min<std::uint64_t>(first + random() % 4, 11)));
        }
        return normalised(ranges);
    };
    for (int round = 0; round < 20000; ++round) {
        const std::vector<FidRange> one = any_set();
        const std::vector<FidRange> other = any_set();
        std::size_t steps = 0;
        const std::vector<FidRange> both = common(one, other, steps);
        const std::vector<FidRange> rest = without(one, other, steps);
        ASSERT_TRUE(is_normal(rest));
        ASSERT_EQ(as_set(both), as_set(one) & as_set(other));
        ASSERT_EQ(as_set(rest), as_set(one) & ~as_set(other));
    }
}

TEST(FidRanges, LongSetsAreReadOnceAndHardlyWithAShortOne) {
    constexpr std::size_t many = 65536;
    std::vector<FidRange> even, odd;
    for (std::uint64_t i = 0; i < many; ++i) {
        even.push_back(range(4 * i, 4 * i));
        odd.push_back(range(4 * i + 2, 4 * i + 2));
    }
    std::size_t steps = 0;
    EXPECT_THAT(without(even, odd, steps), testing::SizeIs(many));
    EXPECT_THAT(common(even, even, steps), testing::SizeIs(many));
    EXPECT_THAT(without(even, even, steps), IsEmpty());
    EXPECT_LT(steps, 15 * many);
    steps = 0;
    EXPECT_THAT(common(std::vector{range(0, 0), range(4 * many - 4, 4 * many)}, even, steps),
                testing::SizeIs(2));
    EXPECT_LT(steps, 100U);
}

// Otherwise a bound on the steps would prove nothing.
TEST(FidRanges, WhatIsLookedAtIsCounted) {
    constexpr std::size_t many = 1024;
    std::vector<FidRange> single, beyond;
    for (std::uint64_t i = 0; i < many; ++i) {
        single.push_back(range(4 * i, 4 * i));
        beyond.push_back(range(4 * (many + i), 4 * (many + i)));
    }
    const std::vector whole{range(0, 4 * many)};
    const std::vector last{single.back()};
    const auto counted = [](auto call) {
        std::size_t steps = 0;
        call(steps);
        return steps;
    };
    EXPECT_GE(counted([&](auto& steps) { without(single, std::span<const FidRange>{}, steps); }),
              many);
    EXPECT_GE(counted([&](auto& steps) { without(whole, single, steps); }), many);
    EXPECT_GE(counted([&](auto& steps) { common(whole, single, steps); }), many);
    EXPECT_GE(counted([&](auto& steps) { common(single, beyond, steps); }), 2 * many)
        << "each of them, and the compared ranges";
    EXPECT_GE(counted([&](auto& steps) { common(last, single, steps); }), std::size_t{10})
        << "the search, which is long";
}

TEST(FidRanges, FindWhatAMapHasOfThemByWhicheverAreFewer) {
    std::mt19937_64 random{3};
    for (int round = 0; round < 2000; ++round) {
        FidMap<std::uint64_t> map;
        std::map<Fid, std::uint64_t> expected, found;
        for (std::uint64_t i = random() % 40; i > 0; --i) {
            const std::uint64_t fid = random() % 64;
            map[Fid{fid}] = fid;
        }
        std::vector<FidRange> ranges;
        for (std::uint64_t i = random() % 4; i > 0; --i) {
            const std::uint64_t first = random() % 64;
            ranges.push_back(range(first, first + random() % (round % 2 == 0 ? 64 : 4)));
        }
        const std::vector<FidRange> set = normalised(ranges);
        std::size_t of_set = 0;
        for (std::uint64_t fid = 0; fid < 128; ++fid) {
            const bool inside = std::ranges::any_of(
                ranges, [&](const FidRange& each) { return contains(each, Fid{fid}); });
            ASSERT_EQ(contains(set, Fid{fid}), inside);
            of_set += inside ? 1 : 0;
            if (inside && map.find(Fid{fid}) != nullptr) expected[Fid{fid}] = fid;
        }
        std::size_t steps = 0;
        visit_within(map, set, steps, [&](Fid fid, std::uint64_t value) {
            ASSERT_TRUE(found.emplace(fid, value).second);
        });
        ASSERT_EQ(found, expected);
        ASSERT_EQ(steps, std::min(of_set, map.places()));
    }
}

TEST(FidRanges, AreCountedNoFurtherThanALimit) {
    EXPECT_EQ(count_fids({}, 5), 0U);
    EXPECT_EQ(count_fids(std::vector{range(1, 2), range(7, 7)}, 5), 3U);
    EXPECT_EQ(count_fids(std::vector{range(1, 2), range(7, 9)}, 5), 5U);
    EXPECT_EQ(count_fids(std::vector{range(1, 2), range(7, 10)}, 5), 5U);
    EXPECT_EQ(count_fids(std::vector{range(0, UINT64_MAX)}, SIZE_MAX), SIZE_MAX);
}

TEST(FidRanges, AreShownInHexadecimal) {
    EXPECT_EQ(to_string(Fid{0}), "0x0");
    EXPECT_EQ(to_string(Fid{UINT64_MAX}), "0xffffffffffffffff");
    EXPECT_EQ(to_string(range(16, 31)), "0x10-0x1f");
    EXPECT_EQ(to_string(range(16, 16)), "0x10");
}

using Map = FidRangeMap<int>;

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
} // namespace netio::pubsub::fid_ranges_test
