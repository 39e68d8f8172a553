// SPDX-License-Identifier: Apache-2.0
#include "apps/dump/message_filter.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace apps {
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

TEST(MessageFilter, OfAPlaceBehindEveryMessageWantsNone) {
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

TEST(MessageFilter, TakesNothingButAConditionAndIsAsItWasBehindWhatIsNone) {
    MessageFilter filter;
    for (const char* const none :
         {"", "c", "caf", "xy", "0x12", "+1", "1:", ":ca", "a:ca", "-1:ca",
          "18446744073709551616:00", "status:", "status:256", "status:x", "ca fe", "1:2:ca"}) {
        EXPECT_FALSE(filter.add(none)) << none;
    }
    EXPECT_TRUE(wants(filter, {}));
}

} // namespace
} // namespace apps
