// SPDX-License-Identifier: Apache-2.0
#include "netio/session/parse_host.hpp"

#include <gtest/gtest.h>

namespace netio {
namespace {

TEST(ParseHost, TakesAddressesInNumbersOfEitherKind) {
    EXPECT_EQ(parse_host("10.0.0.1"), parse_host("::ffff:10.0.0.1"));
    EXPECT_TRUE(access::is_any(*parse_host("0::0")));
    for (const char* name : {"", "felix01", "localhost", "10.0.0", "[::1]", "fe80::1 "})
        EXPECT_FALSE(parse_host(name)) << name;
}

TEST(ParseHost, LeavesOutTheZoneOfAnIpv6Address) {
    EXPECT_EQ(parse_host("fe80::1%eth0"), parse_host("fe80::1"));
    EXPECT_TRUE(access::is_link_local(*parse_host("fe80::1%2")));
    for (const char* wrong : {"fe80::1%", "%eth0", "10.0.0.1%eth0", "felix01%eth0"})
        EXPECT_FALSE(parse_host(wrong)) << wrong;
}

TEST(ParseHost, NamesTheZone) {
    EXPECT_EQ(zone_of("fe80::1%eth0"), "eth0");
    EXPECT_EQ(zone_of("fe80::1"), "");
}

TEST(ParseHost, LinkLocalAddressesAreThoseOfTenBits) {
    for (const char* local : {"fe80::", "fe80::1", "febf:ffff::1"})
        EXPECT_TRUE(access::is_link_local(*parse_host(local))) << local;
    for (const char* other : {"fec0::1", "fe7f::1", "ff02::1", "::1", "169.254.0.1", "2001:db8::1"})
        EXPECT_FALSE(access::is_link_local(*parse_host(other))) << other;
}

} // namespace
} // namespace netio
