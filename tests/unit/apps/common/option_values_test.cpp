// SPDX-License-Identifier: Apache-2.0
#include "apps/common/option_values.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>

namespace apps {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

TEST(OptionValues, NobodyIsConnectedToAtPortZero) {
    EXPECT_EQ(peer_address("[::1]:65535"), (netio::Address{"::1", 65535}));
    EXPECT_THAT(refusal([] { peer_address("127.0.0.1:0"); }), HasSubstr("from 1 to 65535"));
    EXPECT_THAT(refusal([] { peer_address("127.0.0.1:70000"); }), HasSubstr("0 to 65535"));
    EXPECT_THAT(refusal([] { peer_address("127.0.0.1"); }), HasSubstr("HOST:PORT"));
}

TEST(OptionValues, TheLeastOfARangeIsNotAboveTheMost) {
    EXPECT_EQ(refusal([] { require_order("--least", 7, "--most", 7); }), "");
    EXPECT_EQ(refusal([] { require_order("--least", 8, "--most", 7); }),
              "--least is 8; it must not exceed --most, which is 7");
}

} // namespace
} // namespace apps
