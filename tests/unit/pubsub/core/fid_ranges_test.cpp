// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include <gmock/gmock.h>

#include <bitset>
#include <cstdint>
#include <random>

namespace netio::pubsub {
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

TEST(FidRanges, AreShownInHexadecimal) {
    EXPECT_EQ(to_string(Fid{0}), "0x0");
    EXPECT_EQ(to_string(Fid{UINT64_MAX}), "0xffffffffffffffff");
    EXPECT_EQ(to_string(range(16, 31)), "0x10-0x1f");
    EXPECT_EQ(to_string(range(16, 16)), "0x10");
}

} // namespace
} // namespace netio::pubsub
