// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscription_rights.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

// A request may have as many ranges as a subscriber may have, and a key as many as its file has
// room for.
TEST(SubscriptionRights, CostARequestWhatItAsksForAndNotThatTimesWhatTheKeyHas) {
    constexpr std::uint64_t count = 16384;
    access::Rights rights;
    SubscriptionRequest request;
    for (std::uint64_t i = 0; i < count; ++i) {
        rights.fids.push_back({.first = 4 * i, .last = 4 * i + 1});
        request.ranges.push_back({.first = Fid{4 * i}, .last = Fid{4 * i + 1}});
    }
    std::size_t steps = 0;
    const auto wishes = permitted(rights, request, {}, steps);
    ASSERT_TRUE(wishes);
    EXPECT_EQ(wishes->size(), count);
    EXPECT_LE(steps, count * 2 * (15 + 2));
}

} // namespace
} // namespace netio::pubsub
