// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/addresses.hpp"

#include "netio/base/status.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstdint>
#include <net/if.h>
#include <netinet/in.h>
#include <string>

namespace netio::fabric::addresses_test {
namespace {

TEST(InterfaceAddress, IsTheFirstOfTheLoopback) {
    EXPECT_EQ(host_at_interface("lo"), "127.0.0.1");
}

TEST(InterfaceAddress, IsOfTheRequestedFamilyOrAnError) {
    EXPECT_EQ(host_at_interface("lo", AF_INET), "127.0.0.1");
    try { // not every machine has this interface
        EXPECT_EQ(host_at_interface("lo", AF_INET6), "::1");
    } catch (const FabricError& error) {
        EXPECT_NE(std::string{error.what()}.find("'lo' has no IPv6 address"), std::string::npos);
    }
}

TEST(InterfaceAddress, AnotherTextIsUnchanged) {
    for (const char* host :
         {"", "127.0.0.1", "::1", "localhost", "no-such-interface-at-all", "lo "})
        EXPECT_EQ(host_at_interface(host), host);
}

sockaddr_in6 ipv6(const char* host, std::uint32_t zone) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(5555);
    address.sin6_scope_id = zone;
    EXPECT_EQ(::inet_pton(AF_INET6, host, &address.sin6_addr), 1);
    return address;
}

std::string shown(const char* host, std::uint32_t zone) {
    const sockaddr_in6 address = ipv6(host, zone);
    return to_string(to_address(&address));
}

access::AuthAddress compared(const char* host, std::uint32_t zone) {
    const sockaddr_in6 address = ipv6(host, zone);
    return to_auth_address(&address);
}

TEST(SocketAddress, IsLocalIfThisMachineHasIt) {
    for (const bool is_own : {true, false}) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(1); // only a privileged process could listen there
        ASSERT_EQ(::inet_pton(AF_INET, is_own ? "127.0.0.1" : "192.0.2.1", &address.sin_addr), 1);
        EXPECT_EQ(is_local(&address), is_own);
    }
}

TEST(SocketAddress, IsShownWithTheInterfaceOfALinkLocalAddress) {
    const unsigned loopback = ::if_nametoindex("lo");
    ASSERT_NE(loopback, 0U);
    for (const std::string host : {"fe80::1", "febf::1", "ff02::1"})
        EXPECT_EQ(shown(host.c_str(), loopback), "[" + host + "%lo]:5555");
    EXPECT_EQ(shown("fe80::1", 4'000'000), "[fe80::1%4000000]:5555") << "no such interface";
    EXPECT_EQ(shown("fe80::1", 0), "[fe80::1]:5555");
}

TEST(SocketAddress, IsShownWithoutAnInterfaceThatMeansNothing) {
    for (const std::string host : {"2001:db8::1", "::1", "::", "fec0::1", "::ffff:10.0.0.1"})
        EXPECT_EQ(shown(host.c_str(), 1), "[" + host + "]:5555");
}

TEST(SocketAddress, DiffersByTheInterfaceOfALinkLocalAddress) {
    EXPECT_NE(compared("fe80::1", 1), compared("fe80::1", 2));
    EXPECT_EQ(compared("fe80::1", 2), compared("fe80::1", 2));
    EXPECT_EQ(compared("fe80::1", 1).host, compared("fe80::1", 2).host);
    EXPECT_EQ(compared("2001:db8::1", 1), compared("2001:db8::1", 2));
}

} // namespace
} // namespace netio::fabric::addresses_test
