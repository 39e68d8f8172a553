// SPDX-License-Identifier: Apache-2.0
#include "apps/common/spelling.hpp"

#include <gtest/gtest.h>

namespace apps {
namespace {

TEST(Spelling, TheNearestWordIsSuggestedIfItIsNear) {
    const std::string_view words[] = {"publish", "subscribe", "pump"};
    EXPECT_EQ(suggestion("subcribe", words), " (did you mean 'subscribe'?)");
    EXPECT_EQ(suggestion("pumb", words), " (did you mean 'pump'?)");
    EXPECT_EQ(suggestion("pub", words), " (did you mean 'publish'?)") << "it begins so";
    EXPECT_EQ(suggestion("doctor", words), "");
    EXPECT_EQ(suggestion("x", {}), "");
}

} // namespace
} // namespace apps
