// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/slow_policy.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::slow_policy_test {
namespace {

TEST(SlowPolicy, DropBlocksLeastAndBlockMost) {
    EXPECT_TRUE(holds_up_more(SlowPolicy::block, SlowPolicy::disconnect));
    EXPECT_TRUE(holds_up_more(SlowPolicy::disconnect, SlowPolicy::drop));
    EXPECT_TRUE(holds_up_more(SlowPolicy::block, SlowPolicy::drop));
    EXPECT_FALSE(holds_up_more(SlowPolicy::drop, SlowPolicy::block));
    EXPECT_FALSE(holds_up_more(SlowPolicy::block, SlowPolicy::block));
}

TEST(SlowPolicy, NewestBlocksNoOneLikeDrop) {
    EXPECT_TRUE(may_miss(SlowPolicy::newest));
    EXPECT_FALSE(holds_up_more(SlowPolicy::newest, SlowPolicy::drop));
    EXPECT_FALSE(holds_up_more(SlowPolicy::drop, SlowPolicy::newest));
    EXPECT_TRUE(holds_up_more(SlowPolicy::disconnect, SlowPolicy::newest));
}

} // namespace
} // namespace netio::pubsub::slow_policy_test
