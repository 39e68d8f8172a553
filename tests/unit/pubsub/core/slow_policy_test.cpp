// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/slow_policy.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::slow_policy_test {
namespace {

TEST(SlowPolicy, DropBlocksLeastAndBlockMost) {
    EXPECT_TRUE(blocks_longer(SlowPolicy::block, SlowPolicy::disconnect));
    EXPECT_TRUE(blocks_longer(SlowPolicy::disconnect, SlowPolicy::drop));
    EXPECT_TRUE(blocks_longer(SlowPolicy::block, SlowPolicy::drop));
    EXPECT_FALSE(blocks_longer(SlowPolicy::drop, SlowPolicy::block));
    EXPECT_FALSE(blocks_longer(SlowPolicy::block, SlowPolicy::block));
}

TEST(SlowPolicy, NewestBlocksNoOneLikeDrop) {
    EXPECT_TRUE(may_drop(SlowPolicy::newest));
    EXPECT_FALSE(blocks_longer(SlowPolicy::newest, SlowPolicy::drop));
    EXPECT_FALSE(blocks_longer(SlowPolicy::drop, SlowPolicy::newest));
    EXPECT_TRUE(blocks_longer(SlowPolicy::disconnect, SlowPolicy::newest));
}

} // namespace
} // namespace netio::pubsub::slow_policy_test
