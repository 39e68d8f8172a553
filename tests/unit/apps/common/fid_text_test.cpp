// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fid_text.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <stdexcept>

namespace apps::fid_text_test {
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

TEST(FidSpec, TakesEveryNthFid) {
    EXPECT_THAT(parse_fids("0-9/4, 20"),
                ElementsAre(range(0, 0), range(4, 4), range(8, 8), range(20, 20)));
}

TEST(FidSpec, TakesFieldsOfAFelixFid) {
    EXPECT_EQ(parse_fids("{detector: 3, link: 0-23, elink: 0-39}").size(), 960U);
    EXPECT_THAT(parse_fids("{link: [1, 3], elink: 2}, 5"),
                ElementsAre(range(5, 5), range(0x1000000000420000, 0x1000000000420000),
                            range(0x1000000000c20000, 0x1000000000c20000)));
    EXPECT_THAT(parse_fids("{detector:3,connector:any,virtual:any,link:any,elink:any,to_flx:any,"
                           "protocol:any,stream:any}"),
                ElementsAre(range(0x1030000000000000, 0x103fffffffffffff)));
}

TEST(FidSpec, TakesAMaskAndAValue) {
    EXPECT_THAT(parse_fids("mask:0xfff0000000000000=0x1030000000000000"),
                ElementsAre(range(0x1030000000000000, 0x103fffffffffffff)));
    EXPECT_THAT(parse_fids("mask: 0xfffffffffffffffd = 1"), ElementsAre(range(1, 1), range(3, 3)));
}

TEST(FidSpec, ShowsAFidByItsFields) {
    const FidRange links{.first = Fid{0x1030000000000000}, .last = Fid{0x1030000000400000}};
    EXPECT_EQ(shown(links, nullptr), "0x1030000000000000-0x1030000000400000");
    EXPECT_EQ(shown(links, find_layout("felix")), "{detector: 3}-{detector: 3, link: 1}");
    EXPECT_EQ(find_layout(""), nullptr);
    EXPECT_THROW(find_layout("alice"), std::invalid_argument);
}

TEST(FidSpec, NamesThePieceThatIsWrong) {
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
    EXPECT_THAT(message("0-9/0"), HasSubstr("'0-9/0' has the step 0"));
    EXPECT_THAT(message("{lnk: 3}"), HasSubstr("has no field 'lnk' of felix: version, detector"));
    EXPECT_THAT(message("{link: 3, link: 4}"), HasSubstr("has 'link' twice"));
    EXPECT_THAT(message("{link}"), HasSubstr("has no FIELD: VALUES"));
    EXPECT_THAT(message("{elink: 64}"), HasSubstr("elink: 64 is out of range; it has 6 bits"));
    EXPECT_THAT(message("mask:0xff"), HasSubstr("has no MASK=VALUE"));
    EXPECT_THAT(message("mask:1=1"), HasSubstr("more than 1048576 ranges of fids"));
    EXPECT_THAT(message("0-0xfffff0/2,0-0xfffff0/2"), HasSubstr("more than 1048576 ranges"));
    for (const char* text : {"{", "}", "{}", "[1]", "{link: [}", "mask:", "mask:=", "{:}", "1/2"})
        EXPECT_THAT(message(text), HasSubstr("; allowed: ")) << text;
}

} // namespace
} // namespace apps::fid_text_test
