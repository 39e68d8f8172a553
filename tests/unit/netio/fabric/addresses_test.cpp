// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/addresses.hpp"

#include "netio/base/status.hpp"

#include <gtest/gtest.h>

namespace netio::fabric {
namespace {

TEST(InterfaceAddress, OfTheLoopbackIsItsFirst) {
    EXPECT_EQ(host_at_interface("lo"), "127.0.0.1");
}

TEST(InterfaceAddress, OfAFamilyIsThatFamilysOrTold) {
    EXPECT_EQ(host_at_interface("lo", AF_INET), "127.0.0.1");
    try { // not every machine has it
        EXPECT_EQ(host_at_interface("lo", AF_INET6), "::1");
    } catch (const FabricError& error) {
        EXPECT_NE(std::string{error.what()}.find("'lo' has no IPv6 address"), std::string::npos);
    }
}

TEST(InterfaceAddress, WhatIsNoInterfaceStaysAsItIs) {
    for (const char* host :
         {"", "127.0.0.1", "::1", "localhost", "no-such-interface-at-all", "lo "})
        EXPECT_EQ(host_at_interface(host), host);
}

} // namespace
} // namespace netio::fabric
