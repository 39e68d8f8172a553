// SPDX-License-Identifier: Apache-2.0
#include "netio/access/machine.hpp"

#include <gtest/gtest.h>

namespace netio::access {
namespace {

Host ipv4(unsigned last) {
    return host_of_ipv4(std::array<std::byte, 4>{std::byte{10}, std::byte{}, std::byte{},
                                                 static_cast<std::byte>(last)});
}

TEST(Machine, OfIpv6IsANetworkOf64Bits) {
    Host one{};
    one[0] = std::byte{0x20};
    one[7] = one[15] = std::byte{1};
    for (std::size_t bit = 0; bit < 128; ++bit) {
        Host other = one;
        other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_EQ(machine_of(other) == machine_of(one), bit >= 64) << bit;
    }
}

TEST(Machine, OfIpv4IsItsAddress) {
    EXPECT_EQ(machine_of(ipv4(1)), ipv4(1));
    EXPECT_NE(machine_of(ipv4(1)), machine_of(ipv4(2)));
    EXPECT_NE(machine_of(ipv4(0)), machine_of(Host{})) << "of which it has the first 64 bits";
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

} // namespace
} // namespace netio::access
