// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fan_out.hpp"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Result = SubscriptionResult;

constexpr SubscriberId a{1};
constexpr SubscriberId b{2};

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

SubscriptionRequest wanting(std::vector<FidRange> ranges, std::optional<SlowPolicy> policy = {}) {
    return {.request = 1, .policy = policy, .ranges = std::move(ranges)};
}

TEST(FanOutRules, WhoKeepsNothingGivesNobodyTheNewest) {
    FanOut fan_out{SlowPolicy::block, 100, {}, false};
    EXPECT_FALSE(fan_out.keeps_newest());
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(1, 1)}, SlowPolicy::newest)),
              Result::policy_refused);
    EXPECT_FALSE(fan_out.wants_anything(a));
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect})
        EXPECT_EQ(fan_out.subscribe(a, wanting({range(1, 1)}, policy)), Result::accepted);
}

TEST(FanOutRules, AsManyRangesAsTheLimitMayBeHadAndLeft) {
    FanOut fan_out{SlowPolicy::block, 3};
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(10, 19), range(30, 39), range(50, 59)})),
              Result::accepted);
    EXPECT_EQ(fan_out.subscribe(a, wanting({range(70, 79)}, SlowPolicy::drop)), Result::table_full)
        << "of all policies together";
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(50, 59)}).result, Result::accepted);
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(35, 35)}).result, Result::accepted);
    EXPECT_FALSE(fan_out.wants(a, Fid{35}));
    EXPECT_EQ(fan_out.unsubscribe(a, std::vector{range(15, 15)}).result, Result::table_full);
    EXPECT_TRUE(fan_out.wants(a, Fid{15}));
}

TEST(FanOutRules, WhoIsGoneIsInNoGroupThatWasLookedUpBefore) {
    FanOut fan_out{SlowPolicy::block, 100};
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(1, 4)})), Result::accepted);
    ASSERT_EQ(fan_out.subscribe(a, wanting({range(5, 9), range(20, 20)}, SlowPolicy::drop)),
              Result::accepted);
    ASSERT_EQ(fan_out.subscribe(b, wanting({range(4, 5)})), Result::accepted);
    ASSERT_EQ(fan_out.lookup(Fid{4}).group->members.size(), 2U);
    EXPECT_THAT(fan_out.remove(a), ElementsAre(range(1, 9), range(20, 20))) << "all that it had";
    EXPECT_THAT(fan_out.lookup(Fid{4}).group->members, ElementsAre(Interest{b, SlowPolicy::block}));
    EXPECT_THAT(fan_out.lookup(Fid{20}).group->members, IsEmpty());
    EXPECT_THAT(fan_out.remove(a), IsEmpty()) << "it has nothing any more";
}

TEST(FanOutRules, PositionsOfASubscriberThatReturnsAreGivenAgain) {
    FanOut fan_out{SlowPolicy::block, 100};
    fan_out.lookup(Fid{1}).published += 3;
    EXPECT_EQ(fan_out.lookup(Fid{2}).published, 0U) << "it was only looked up";
    const auto positions = [&] {
        return fan_out.subscribe(a, fan_out.wishes_of(wanting({range(0, 9)}))).positions;
    };
    EXPECT_THAT(positions(), ElementsAre(FidCount{Fid{1}, 3}));
    EXPECT_THAT(positions(), IsEmpty()) << "the subscriber has all of them";
    ASSERT_EQ(fan_out.unsubscribe(a, std::vector{range(1, 1)}).result, Result::accepted);
    EXPECT_THAT(positions(), ElementsAre(FidCount{Fid{1}, 3}));
    fan_out.remove(a);
    EXPECT_THAT(positions(), ElementsAre(FidCount{Fid{1}, 3}));
}

} // namespace
} // namespace netio::pubsub
