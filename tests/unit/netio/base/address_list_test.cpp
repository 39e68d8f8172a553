// SPDX-License-Identifier: Apache-2.0
#include "netio/base/address_list.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace netio::address_list_test {
namespace {

TEST(AddressList, IsWrittenAsTextsOrAsHostAndPort) {
    struct Options {
        AddressList addresses{};
    };
    const std::vector<Address> two{{"10.0.0.1", 1}, {"::1", 2}};
    EXPECT_EQ((Options{.addresses = {"10.0.0.1:1", "[::1]:2"}}.addresses), two);
    EXPECT_EQ((Options{.addresses = {{"10.0.0.1", 1}, {"::1", 2}}}.addresses), two);
    EXPECT_EQ((Options{.addresses = {{.host = "10.0.0.1", .port = 1}}}.addresses),
              (std::vector<Address>{{"10.0.0.1", 1}}));
    EXPECT_EQ((Options{.addresses = {"10.0.0.1:1"}}.addresses.size()), 1U);
    EXPECT_EQ((Options{.addresses = two}.addresses), two);
    EXPECT_EQ((Options{.addresses = "10.0.0.1:1"}.addresses.size()), 1U);
    EXPECT_EQ((Options{.addresses = std::string{"[::1]:2"}}.addresses), (std::vector{two[1]}));
    EXPECT_EQ((Options{.addresses = two[0]}.addresses), (std::vector{two[0]}));
    EXPECT_THROW((Options{.addresses = {"10.0.0.1"}}), std::invalid_argument);
}

} // namespace
} // namespace netio::address_list_test
