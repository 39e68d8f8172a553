// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_set.hpp"

#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace netio::fid_set_test {
namespace {

using testing::ElementsAre;

static_assert(std::is_convertible_v<unsigned, Fid> && std::is_convertible_v<std::uint64_t, Fid>);
static_assert(!std::is_convertible_v<bool, Fid> && !std::is_convertible_v<char, Fid>);
static_assert(!std::is_convertible_v<double, Fid> && !std::is_convertible_v<int*, Fid>);
static_assert(!std::is_convertible_v<Fid, std::uint64_t>);
static_assert(std::is_aggregate_v<FidRange>);
static_assert(!std::is_convertible_v<std::vector<FidRange>, FidSet>);
static_assert(!std::is_convertible_v<FidRange, FidSet> && !std::is_convertible_v<Fid, FidSet>);
static_assert(sizeof(Fid) == 8 && std::is_trivially_copyable_v<Fid>);

TEST(Fid, IsMadeOfAnyIntegerThatIsNotNegative) {
    constexpr Fid fid = 7;
    static_assert(fid.value() == 7 && fid == 7U && fid < 8U);
    EXPECT_EQ(Fid{UINT64_MAX}.value(), UINT64_MAX);
    int number = -1;
    EXPECT_THROW((Fid{number}), std::invalid_argument);
    EXPECT_EQ(std::unordered_set<Fid>({1, 2, 1}).size(), 2U);
    EXPECT_EQ((FidRange{0, 63}), (FidRange{.first = Fid{0}, .last = Fid{63}}));
}

TEST(Fid, IsPrintedInHexadecimal) {
    std::ostringstream out;
    out << Fid{31};
    EXPECT_EQ(out.str(), "0x1f");
}

TEST(FidSet, JoinsRangesThatOverlapOrTouch) {
    EXPECT_THAT((FidSet{{10, 19}, {30, 39}, {20, 24}, {0, 3}}.ranges()),
                ElementsAre(FidRange{0, 3}, FidRange{10, 24}, FidRange{30, 39}));
    EXPECT_THAT((FidSet{{10, 19}, {30, 39}, {5, 40}}.ranges()), ElementsAre(FidRange{5, 40}));
    EXPECT_THAT((FidSet{{UINT64_MAX, UINT64_MAX}, {0, UINT64_MAX - 1}}.ranges()),
                ElementsAre(FidRange{0, UINT64_MAX}));
    EXPECT_TRUE(FidSet{}.empty());
    EXPECT_THROW((FidSet{{2, 1}}), std::invalid_argument);
}

TEST(FidSet, HasWhatAPlainSetHas) {
    unsigned random = 1;
    const auto draw = [&random](unsigned below) {
        random = random * 1103515245 + 12345;
        return (random >> 16) % below;
    };
    for (int round = 0; round < 200; ++round) {
        FidSet set;
        std::set<unsigned> model;
        for (int i = 0; i < 12; ++i) {
            const unsigned first = draw(60);
            const unsigned last = first + draw(5);
            set.add(FidRange{first, last});
            for (unsigned fid = first; fid <= last; ++fid)
                model.insert(fid);
            for (unsigned fid = 0; fid < 70; ++fid)
                ASSERT_EQ(set.contains(fid), model.count(fid) > 0);
        }
        for (std::size_t at = 1; at < set.ranges().size(); ++at)
            ASSERT_GT(set.ranges()[at].first.value(), set.ranges()[at - 1].last.value() + 1);
    }
}

} // namespace
} // namespace netio::fid_set_test
