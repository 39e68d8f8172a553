// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscription_rights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

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

// The policy of one fid, looked up by itself; nothing: it is not permitted.
std::optional<SlowPolicy> policy_for(const access::Rights& rights, std::uint64_t fid,
                                     std::optional<SlowPolicy> asked, const OwnPolicies& own) {
    for (const access::FidRight& right : rights.fids) {
        if (fid < right.first || fid > right.last) continue;
        if (!right.patience) return asked ? *asked : own.policy;
        const SlowPolicy most = policy_of(*right.patience);
        if (asked == most) return most;
        if (asked && !right.forced) {
            if (patience_of(*asked) > *right.patience) return std::nullopt;
            return asked;
        }
        if (most == SlowPolicy::newest && !own.keeps_newest) return SlowPolicy::drop;
        return holds_up_more(most, own.policy) ? own.policy : most;
    }
    return std::nullopt;
}

class RandomRights {
  public:
    explicit RandomRights(std::uint64_t seed) : random_{seed} {}

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    // Of some of the fids from `first` to `last`; the ranges may touch.
    access::Rights make(std::uint64_t first, std::uint64_t last) {
        access::Rights rights;
        for (std::uint64_t at = first; rights.fids.size() < 4;) {
            at += below(3) == 0 ? 1 + below(2) : 0;
            if (at > last || at < first) break;
            const std::uint64_t end = at + std::min(below(4), last - at);
            access::FidRight right{.first = at, .last = end};
            if (below(4) != 0) right.patience = static_cast<access::Patience>(below(4));
            right.forced = right.patience && below(3) == 0;
            rights.fids.push_back(right);
            if (end == last) break;
            at = end + 1;
        }
        return rights;
    }
    SubscriptionRequest ask(std::uint64_t first, std::uint64_t last) {
        SubscriptionRequest request;
        if (below(3) != 0) request.policy = slow_policies.at(below(slow_policies.size()));
        for (std::uint64_t count = 1 + below(2); count > 0; --count) {
            const std::uint64_t begin = first + below(last - first + 1);
            const std::uint64_t end = begin + std::min(below(5), last - begin);
            request.ranges.push_back({.first = Fid{begin}, .last = Fid{end}});
        }
        return request;
    }

  private:
    std::mt19937_64 random_;
};

// Of a few fids, at the beginning or the end of all that there are: looked up together they get
// what each would get alone, and all or none.
TEST(SubscriptionRights, GiveEachFidOfARequestWhatItWouldGetAlone) {
    int given = 0;
    int refused = 0;
    for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
        SCOPED_TRACE(seed);
        RandomRights random{seed};
        const std::uint64_t first = seed % 2 == 0 ? 0 : UINT64_MAX - 11;
        const access::Rights rights = random.make(first, first + 11);
        const SubscriptionRequest request = random.ask(first, first + 11);
        const OwnPolicies own{.policy = slow_policies.at(random.below(3)),
                              .keeps_newest = random.below(2) == 0};
        std::vector<std::pair<std::uint64_t, SlowPolicy>> expected;
        bool all = true;
        for (const FidRange& range : request.ranges) {
            const std::uint64_t count = to_integer(range.last) - to_integer(range.first) + 1;
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t fid = to_integer(range.first) + i;
                const auto policy = policy_for(rights, fid, request.policy, own);
                all = all && policy;
                if (policy) expected.emplace_back(fid, *policy);
            }
        }
        std::size_t steps = 0;
        const auto wishes = permitted(rights, request, own, steps);
        ASSERT_EQ(wishes.has_value(), all);
        ++(all ? given : refused);
        if (!all) continue;
        std::vector<std::pair<std::uint64_t, SlowPolicy>> found;
        for (const FanOut::Wish& wish : *wishes) {
            ASSERT_LE(wish.fids.first, wish.fids.last);
            const std::uint64_t count =
                to_integer(wish.fids.last) - to_integer(wish.fids.first) + 1;
            for (std::uint64_t i = 0; i < count; ++i)
                found.emplace_back(to_integer(wish.fids.first) + i, wish.policy);
        }
        ASSERT_EQ(found, expected);
    }
    EXPECT_GT(given, 1000);
    EXPECT_GT(refused, 1000);
}

} // namespace
} // namespace netio::pubsub
