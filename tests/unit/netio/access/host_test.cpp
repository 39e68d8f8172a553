// SPDX-License-Identifier: Apache-2.0
#include "netio/access/host.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>

namespace netio::access::host_test {
namespace {

Host ipv4(unsigned last) {
    return host_of_ipv4(std::array<std::byte, 4>{std::byte{10}, std::byte{}, std::byte{},
                                                 static_cast<std::byte>(last)});
}

TEST(Machine, IsA64BitNetworkForIpv6) {
    Host one{};
    one[0] = std::byte{0x20};
    one[7] = one[15] = std::byte{1};
    for (std::size_t bit = 0; bit < 128; ++bit) {
        Host other = one;
        other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_EQ(machine_of(other) == machine_of(one), bit >= 64) << bit;
    }
}

TEST(Machine, IsTheAddressForIpv4) {
    EXPECT_EQ(machine_of(ipv4(1)), ipv4(1));
    EXPECT_NE(machine_of(ipv4(1)), machine_of(ipv4(2)));
    EXPECT_NE(machine_of(ipv4(0)), machine_of(Host{})) << "whose first 64 bits are equal";
}

TEST(Machine, AllOfItsAddressesAreNamedByZerosInEitherNotation) {
    EXPECT_TRUE(is_any(Host{}));
    EXPECT_TRUE(is_any(host_of_ipv4(std::array<std::byte, 4>{})));
    for (std::size_t bit = 0; bit < 128; ++bit) {
        Host one{};
        one[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(is_any(one)) << bit;
        Host other = host_of_ipv4(std::array<std::byte, 4>{});
        other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(is_any(other)) << bit;
    }
}

Host ipv4(unsigned a, unsigned b, unsigned c, unsigned d) {
    return host_of_ipv4(
        std::array<std::byte, 4>{static_cast<std::byte>(a), static_cast<std::byte>(b),
                                 static_cast<std::byte>(c), static_cast<std::byte>(d)});
}

Host ipv6(std::initializer_list<std::pair<std::size_t, unsigned>> bytes) {
    Host host{};
    for (const auto& [at, value] : bytes)
        host[at] = static_cast<std::byte>(value);
    return host;
}

TEST(Reach, OnlyLoopbackAddressesAreOfThisMachineAlone) {
    for (unsigned first = 0; first < 256; ++first) {
        EXPECT_EQ(is_loopback(ipv4(first, 0, 0, 1)), first == 127) << first;
        EXPECT_EQ(is_loopback(ipv4(first, 255, 255, 255)), first == 127) << first;
    }
    EXPECT_FALSE(is_loopback(ipv4(0, 0, 0, 0))) << "the wildcard address";
    EXPECT_TRUE(is_loopback(ipv6({{15, 1}})));
    EXPECT_FALSE(is_loopback(ipv6({}))) << "the wildcard address";
    // Every address that differs from ::1 in one bit, and addresses that look like 127.0.0.1.
    for (std::size_t bit = 0; bit < 128; ++bit) {
        Host host = ipv6({{15, 1}});
        host[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(is_loopback(host)) << bit;
    }
    EXPECT_FALSE(is_loopback(ipv6({{12, 127}, {15, 1}})));
    EXPECT_FALSE(is_loopback(ipv6({{0, 0xfe}, {1, 0x80}, {15, 1}})));
}

TEST(Reach, AnOpenDoorHasToBeMeant) {
    const auto refused = [](const Host& host, bool has_keys, bool open) {
        return refuse_listening(host, "10.0.0.1:12345", has_keys, open, "--allow-remote-anonymous");
    };
    for (const bool has_keys : {false, true}) {
        for (const bool open : {false, true}) {
            EXPECT_EQ(refused(ipv4(127, 0, 0, 1), has_keys, open), "");
            for (const Host& host : {ipv4(10, 0, 0, 1), ipv4(0, 0, 0, 0), Host{}})
                EXPECT_EQ(refused(host, has_keys, open).empty(), has_keys || open);
        }
    }
    const std::string problem = refused(ipv4(10, 0, 0, 1), false, false);
    EXPECT_TRUE(problem.starts_with("10.0.0.1:12345 can be reached"));
    EXPECT_NE(problem.find("--allow-remote-anonymous"), std::string::npos);
}

TEST(ParseHost, TakesAddressesInNumbersOfEitherKind) {
    EXPECT_EQ(parse_host("10.0.0.1"), parse_host("::ffff:10.0.0.1"));
    EXPECT_TRUE(is_any(*parse_host("0::0")));
    for (const char* name : {"", "felix01", "localhost", "10.0.0", "[::1]", "fe80::1 "})
        EXPECT_FALSE(parse_host(name)) << name;
}

TEST(ParseHost, LeavesOutTheZoneOfAnIpv6Address) {
    EXPECT_EQ(parse_host("fe80::1%eth0"), parse_host("fe80::1"));
    EXPECT_TRUE(is_link_local(*parse_host("fe80::1%2")));
    for (const char* wrong : {"fe80::1%", "%eth0", "10.0.0.1%eth0", "felix01%eth0"})
        EXPECT_FALSE(parse_host(wrong)) << wrong;
}

TEST(ParseHost, NamesTheZone) {
    EXPECT_EQ(zone_of("fe80::1%eth0"), "eth0");
    EXPECT_EQ(zone_of("fe80::1"), "");
}

TEST(ParseHost, LinkLocalAddressesAreThoseOfTenBits) {
    for (const char* local : {"fe80::", "fe80::1", "febf:ffff::1"})
        EXPECT_TRUE(is_link_local(*parse_host(local))) << local;
    for (const char* other : {"fec0::1", "fe7f::1", "ff02::1", "::1", "169.254.0.1", "2001:db8::1"})
        EXPECT_FALSE(is_link_local(*parse_host(other))) << other;
}

} // namespace
} // namespace netio::access::host_test
