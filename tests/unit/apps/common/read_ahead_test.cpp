// SPDX-License-Identifier: Apache-2.0
#include "apps/common/player.hpp"

#include <gmock/gmock.h>

namespace apps::replay::read_ahead_test {
namespace {

using netio::FidRange;
using testing::UnorderedElementsAre;

TEST(FidReplacements, ReplaceARangeAsTheyReplaceEachOfItsFids) {
    FidReplacements replace;
    replace.add("10-19=110-119");
    replace.add("15-30=500-515"); // 15 to 19 are replaced already
    EXPECT_THAT(replace(FidRange{0, 25}),
                UnorderedElementsAre(FidRange{0, 9}, FidRange{110, 119}, FidRange{505, 510}));
    EXPECT_THAT(replace(FidRange{12, 13}), UnorderedElementsAre(FidRange{112, 113}));
    EXPECT_EQ(replace(netio::Fid{15}), netio::Fid{115});
    EXPECT_EQ(replace(netio::Fid{20}), netio::Fid{505});
    EXPECT_THAT(replace(FidRange{0, UINT64_MAX}),
                UnorderedElementsAre(FidRange{0, 9}, FidRange{110, 119}, FidRange{505, 515},
                                     FidRange{31, UINT64_MAX}));
}

} // namespace
} // namespace apps::replay::read_ahead_test
