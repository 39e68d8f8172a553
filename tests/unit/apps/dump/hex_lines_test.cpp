// SPDX-License-Identifier: Apache-2.0
#include "apps/dump/hex_lines.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace apps {
namespace {

std::string lines(std::string_view text, std::size_t shown = 256) {
    return hex_lines(std::as_bytes(std::span{text}), shown);
}

TEST(HexLines, ShowWhereBytesAreAndWhatIsText) {
    EXPECT_EQ(lines("abcdefgh\n\x7f\xff 0123456"),
              "  000000  61 62 63 64 65 66 67 68  0a 7f ff 20 30 31 32 33  |abcdefgh... 0123|\n"
              "  000010  34 35 36                                          |456|\n");
}

TEST(HexLines, OfNothingAreNone) {
    EXPECT_EQ(lines(""), "");
}

TEST(HexLines, SayHowManyBytesTheyLeaveOut) {
    EXPECT_EQ(lines("abc", 1), "  000000  61                                                |a|\n"
                               "  and 2 bytes more\n");
    EXPECT_EQ(lines("abc", 0), "  and 3 bytes more\n");
    EXPECT_EQ(lines(std::string(16, 'x'), 16),
              "  000000  78 78 78 78 78 78 78 78  78 78 78 78 78 78 78 78  |xxxxxxxxxxxxxxxx|\n");
}

} // namespace
} // namespace apps
