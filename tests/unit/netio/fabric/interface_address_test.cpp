// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/interface_address.hpp"

#include <gtest/gtest.h>

namespace netio::fabric {
namespace {

TEST(InterfaceAddress, OfTheLoopbackIsItsFirst) {
    EXPECT_EQ(host_at_interface("lo"), "127.0.0.1");
}

TEST(InterfaceAddress, WhatIsNoInterfaceStaysAsItIs) {
    for (const char* host :
         {"", "127.0.0.1", "::1", "localhost", "no-such-interface-at-all", "lo "})
        EXPECT_EQ(host_at_interface(host), host);
}

} // namespace
} // namespace netio::fabric
