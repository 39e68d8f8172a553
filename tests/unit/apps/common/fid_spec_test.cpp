// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fid_spec.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <stdexcept>

namespace apps {
namespace {

using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using testing::ElementsAre;
using testing::HasSubstr;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

TEST(FidSpec, TakesDecimalHexRangesAndLists) {
    EXPECT_THAT(parse_fids("7"), ElementsAre(range(7, 7)));
    EXPECT_THAT(parse_fids("0x1F"), ElementsAre(range(31, 31)));
    EXPECT_THAT(parse_fids("0-63"), ElementsAre(range(0, 63)));
    EXPECT_THAT(parse_fids("0x10 - 0x1f, 3 ,5"),
                ElementsAre(range(3, 3), range(5, 5), range(16, 31)));
    EXPECT_THAT(parse_fids("5,6,7,1-4"), ElementsAre(range(1, 7)));
    EXPECT_THAT(parse_fids("0-0xffffffffffffffff"), ElementsAre(range(0, UINT64_MAX)));
}

TEST(FidSpec, SaysWhichPieceIsWrong) {
    const auto message = [](const char* text) -> std::string {
        try {
            parse_fids(text);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "no error";
    };
    for (const char* text :
         {"", "x", "0x", "-1", "1-", "1,", "1 2", "12a", "0xfg", "1--2", "1-2-3"})
        EXPECT_THAT(message(text), HasSubstr("allowed: a fid in decimal or hex")) << text;
    EXPECT_THAT(message("1,9-3"), HasSubstr("'9-3' ends before it begins"));
    EXPECT_THAT(message("0x10000000000000000"), HasSubstr("does not fit into 64 bits"));
    EXPECT_THAT(message("4,zwölf"), HasSubstr("'zwölf' is not a fid"));
}

} // namespace
} // namespace apps
