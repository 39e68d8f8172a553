// SPDX-License-Identifier: Apache-2.0
#include "netio/session/places.hpp"

#include <gtest/gtest.h>

namespace netio {
namespace {

TEST(Places, OneHostTakesHalfOfThemAtMost) {
    Places places{5};
    for (const char* peer : {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"})
        EXPECT_EQ(places.enter(peer), "");
    EXPECT_EQ(places.enter("10.0.0.1:4"), "3 peers of that host are here already");
    EXPECT_EQ(places.enter("10.0.0.2:1"), "");
    EXPECT_EQ(places.enter("[::1]:1"), "");
    EXPECT_EQ(places.enter("10.0.0.3:1"), "5 peers are here already");
}

// Who has a network of IPv6 has more addresses than there are places.
TEST(Places, TheAddressesOfAnIpv6NetworkAreOneHost) {
    Places places{6, 2};
    EXPECT_EQ(places.enter("[2001:db8:0:1::1]:1"), "");
    EXPECT_EQ(places.enter("[2001:db8:0:1:ffff::2]:1"), "");
    EXPECT_EQ(places.enter("[2001:db8:0:1::3]:1"), "2 peers of that host are here already");
    EXPECT_EQ(places.enter("[2001:db8:0:2::1]:1"), "") << "another network";
    places.leave("[2001:db8:0:1::1]:1");
    EXPECT_EQ(places.enter("[2001:db8:0:1::3]:1"), "");
    EXPECT_EQ(places.enter("[fe80::1%eth0]:1"), "");
    EXPECT_EQ(places.enter("[fe80::2%eth0]:1"), "");
    EXPECT_EQ(places.enter("[fe80::3%eth0]:1"), "2 peers of that host are here already");
}

TEST(Places, AnIpv4AddressIsTheSameInEitherNotation) {
    Places places{6, 2};
    EXPECT_EQ(places.enter("10.0.0.1:1"), "");
    EXPECT_EQ(places.enter("[::ffff:10.0.0.1]:1"), "");
    EXPECT_NE(places.enter("10.0.0.1:2"), "");
    EXPECT_EQ(places.enter("[::ffff:10.0.0.2]:1"), "") << "another host";
}

TEST(Places, WhoLeavesMakesPlaceForAnother) {
    Places places{1};
    EXPECT_EQ(places.enter("a:1"), "");
    EXPECT_NE(places.enter("b:1"), "");
    places.leave("a:1");
    EXPECT_EQ(places.enter("a:2"), "") << "also to one of its host";
}

TEST(Places, AsManyOfOneHostAsOneSays) {
    Places places{4, 4};
    for (const char* peer : {"a:1", "a:2", "a:3", "a:4"})
        EXPECT_EQ(places.enter(peer), "");
}

} // namespace
} // namespace netio
