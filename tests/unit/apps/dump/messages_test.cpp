// SPDX-License-Identifier: Apache-2.0
#include "apps/dump/dump.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace apps::messages_test {
namespace {

bool wants(const MessageFilter& filter, std::initializer_list<int> bytes, int status = 0) {
    std::vector<std::byte> message;
    for (const int byte : bytes)
        message.push_back(static_cast<std::byte>(byte));
    return filter.wants(message, static_cast<std::uint8_t>(status));
}

TEST(MessageFilter, WithoutAConditionWantsEverything) {
    EXPECT_TRUE(wants({}, {}));
    EXPECT_TRUE(wants({}, {1, 2}, 255));
}

TEST(MessageFilter, FindsBytesWhereverTheyAre) {
    MessageFilter filter;
    ASSERT_TRUE(filter.add("cAfe"));
    EXPECT_TRUE(wants(filter, {0xca, 0xfe}));
    EXPECT_TRUE(wants(filter, {0, 0xca, 0xca, 0xfe}));
    EXPECT_FALSE(wants(filter, {0xca}));
    EXPECT_FALSE(wants(filter, {0xca, 0, 0xfe}));
    EXPECT_FALSE(wants(filter, {}));
}

TEST(MessageFilter, LooksAtOnePlaceWhereOneIsNamed) {
    MessageFilter filter;
    ASSERT_TRUE(filter.add("2:cafe"));
    EXPECT_TRUE(wants(filter, {0, 0, 0xca, 0xfe}));
    EXPECT_FALSE(wants(filter, {0xca, 0xfe, 0, 0}));
    EXPECT_FALSE(wants(filter, {0, 0, 0xca}));
    EXPECT_FALSE(wants(filter, {0}));
}

TEST(MessageFilter, AnOffsetBeyondEveryMessageMatchesNone) {
    MessageFilter filter;
    ASSERT_TRUE(filter.add("18446744073709551615:00"));
    EXPECT_FALSE(wants(filter, {0, 0}));
}

TEST(MessageFilter, WantsWhatMeetsEveryCondition) {
    MessageFilter filter;
    ASSERT_TRUE(filter.add("0:01"));
    ASSERT_TRUE(filter.add("ff"));
    ASSERT_TRUE(filter.add("status:3"));
    EXPECT_TRUE(wants(filter, {1, 0xff}, 3));
    EXPECT_FALSE(wants(filter, {1, 0xff}, 2));
    EXPECT_FALSE(wants(filter, {1, 0xfe}, 3));
    EXPECT_FALSE(wants(filter, {2, 0xff}, 3));
}

TEST(MessageFilter, AcceptsOnlyAConditionAndIsUnchangedByAnother) {
    MessageFilter filter;
    for (const char* const none :
         {"", "c", "caf", "xy", "0x12", "+1", "1:", ":ca", "a:ca", "-1:ca",
          "18446744073709551616:00", "status:", "status:256", "status:x", "ca fe", "1:2:ca"}) {
        EXPECT_FALSE(filter.add(none)) << none;
    }
    EXPECT_TRUE(wants(filter, {}));
}

std::string lines(std::string_view text, std::size_t shown = 256) {
    return hex_lines(std::as_bytes(std::span{text}), shown);
}

TEST(HexLines, ShowWhereBytesAreAndWhatIsText) {
    EXPECT_EQ(lines("abcdefgh\n\x7f\xff 0123456"),
              "  000000  61 62 63 64 65 66 67 68  0a 7f ff 20 30 31 32 33  |abcdefgh... 0123|\n"
              "  000010  34 35 36                                          |456|\n");
}

TEST(HexLines, AreEmptyWithoutBytes) {
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

} // namespace apps::messages_test
