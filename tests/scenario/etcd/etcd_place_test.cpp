// SPDX-License-Identifier: Apache-2.0
#include "apps/etcd/etcd_registry.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace apps::etcd_place_test {
namespace {

using testing::HasSubstr;

TEST(EtcdPlace, HasAnAddressAPrefixAndAUser) {
    const EtcdPlace plain = parse_etcd_place("etcd://daq-1:2379");
    EXPECT_EQ(plain.address, (netio::Address{"daq-1", 2379}));
    EXPECT_EQ(plain.prefix, "netio");
    EXPECT_FALSE(plain.tls);
    const EtcdPlace all = parse_etcd_place("etcds://[::1]:1/run/5?user=/etc/user&ca=/etc/ca.pem");
    EXPECT_TRUE(all.tls);
    EXPECT_EQ(all.prefix, "run/5");
    EXPECT_EQ(all.user_file, "/etc/user");
    EXPECT_EQ(all.ca_file, "/etc/ca.pem");
}

TEST(EtcdPlace, AMistakeIsNamed) {
    const auto refusal = [](const char* text) -> std::string {
        try {
            parse_etcd_place(text);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "it is taken";
    };
    for (const char* text : {"", "etcd://", "etcd://h", "etcd://h:0", "etcd://h:1/a b",
                             "etcd://h:1?user", "etcd://h:1?user=", "http://h:1"})
        EXPECT_THAT(refusal(text), HasSubstr("; allowed: etcd://HOST:PORT")) << text;
    EXPECT_THAT(refusal("etcd://h:1?password=x"), HasSubstr("has a parameter 'password'"));
}

} // namespace
} // namespace apps::etcd_place_test
