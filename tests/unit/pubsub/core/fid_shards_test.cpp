// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_shards.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>

namespace netio::pubsub::fid_shards_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

std::uint64_t count_of(const std::vector<FidRange>& ranges) {
    std::uint64_t count = 0;
    for (const FidRange& each : ranges)
        count += to_integer(each.last) - to_integer(each.first) + 1;
    return count;
}

TEST(FidShards, HaveConsecutiveFidsEach) {
    const FidShards shards = FidShards::divide({range(0, 63)}, 2);
    EXPECT_THAT(shards.of(0), ElementsAre(range(0, 31)));
    EXPECT_THAT(shards.of(1), ElementsAre(range(32, 63)));
    EXPECT_EQ(shards.owner(Fid{31}), 0U);
    EXPECT_EQ(shards.owner(Fid{32}), 1U);
    EXPECT_EQ(shards.owner(Fid{64}), std::nullopt);
}

TEST(FidShards, AreDisjointWholeAndEquallyLargeWhateverIsDivided) {
    std::mt19937_64 random{1};
    for (int round = 0; round < 2000; ++round) {
        std::vector<FidRange> fids;
        for (std::uint64_t i = random() % 4; i > 0; --i) {
            const std::uint64_t first = random() % 40;
            fids.push_back(range(first, first + random() % 10));
        }
        const std::size_t count = 1 + random() % 7;
        const FidShards shards = FidShards::divide(fids, count);
        ASSERT_EQ(shards.count(), count);
        std::uint64_t most = 0;
        std::uint64_t least = UINT64_MAX;
        for (std::size_t i = 0; i < count; ++i) {
            most = std::max(most, count_of(shards.of(i)));
            least = std::min(least, count_of(shards.of(i)));
        }
        ASSERT_LE(most - least, 1U);
        std::size_t shard = 0; // fids increase with the shards
        for (std::uint64_t i = 0; i < 60; ++i) {
            const bool wanted = std::ranges::any_of(
                fids, [&](const FidRange& each) { return contains(each, Fid{i}); });
            const auto owner = shards.owner(Fid{i});
            ASSERT_EQ(owner.has_value(), wanted) << i;
            if (!owner) continue;
            ASSERT_GE(*owner, shard);
            shard = *owner;
            ASSERT_TRUE(std::ranges::any_of(
                shards.of(shard), [&](const FidRange& each) { return contains(each, Fid{i}); }));
        }
    }
}

TEST(FidShards, ReachOverTheWholeSpaceOfFids) {
    const FidShards halves = FidShards::divide({range(0, UINT64_MAX)}, 2);
    EXPECT_THAT(halves.of(0), ElementsAre(range(0, UINT64_MAX / 2)));
    EXPECT_THAT(halves.of(1), ElementsAre(range(UINT64_MAX / 2 + 1, UINT64_MAX)));
    const FidShards thirds = FidShards::divide({range(0, UINT64_MAX)}, 3);
    EXPECT_EQ(count_of(thirds.of(0)), UINT64_MAX / 3 + 1);
    EXPECT_THAT(thirds.of(2).back().last, Fid{UINT64_MAX});
    EXPECT_THAT(FidShards::divide({range(0, UINT64_MAX)}, 1).of(0),
                ElementsAre(range(0, UINT64_MAX)));
}

TEST(FidShards, WithFewerFidsThanShardsTheLastOnesAreEmpty) {
    const FidShards shards = FidShards::divide({range(5, 6)}, 3);
    EXPECT_THAT(shards.of(0), ElementsAre(range(5, 5)));
    EXPECT_THAT(shards.of(1), ElementsAre(range(6, 6)));
    EXPECT_THAT(shards.of(2), IsEmpty());
    EXPECT_THROW(FidShards::divide({range(5, 6)}, 0), std::invalid_argument);
}

TEST(FidShards, RefuseAFidThatTwoHave) {
    using Lists = std::vector<std::vector<FidRange>>;
    const FidShards shards{Lists{{range(8, 9), range(1, 3)}, {range(4, 7)}}};
    EXPECT_THAT(shards.of(0), ElementsAre(range(1, 3), range(8, 9)));
    EXPECT_EQ(shards.owner(Fid{8}), 0U);
    EXPECT_EQ(shards.owner(Fid{4}), 1U);
    EXPECT_THROW((FidShards{Lists{{range(1, 3)}, {range(3, 3)}}}), std::invalid_argument);
    EXPECT_THROW((FidShards{Lists{{range(3, 1)}}}), std::invalid_argument);
    EXPECT_THAT((FidShards{Lists{{range(1, 3), range(2, 5)}}}).of(0), ElementsAre(range(1, 5)));
}

} // namespace
} // namespace netio::pubsub::fid_shards_test
