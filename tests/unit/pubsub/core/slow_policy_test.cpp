// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/slow_policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace netio::pubsub {
namespace {

using Policy = std::optional<SlowPolicy>;

TEST(SlowPolicy, DropHoldsUpLeastAndBlockMost) {
    EXPECT_TRUE(holds_up_more(SlowPolicy::block, SlowPolicy::disconnect));
    EXPECT_TRUE(holds_up_more(SlowPolicy::disconnect, SlowPolicy::drop));
    EXPECT_TRUE(holds_up_more(SlowPolicy::block, SlowPolicy::drop));
    EXPECT_FALSE(holds_up_more(SlowPolicy::drop, SlowPolicy::block));
    EXPECT_FALSE(holds_up_more(SlowPolicy::block, SlowPolicy::block));
}

TEST(SlowPolicies, TakeTheWholeRangeOfFids) {
    SlowPolicies policies;
    const FidRange all{.first = Fid{0}, .last = Fid{UINT64_MAX}};
    policies.set(all, SlowPolicy::drop);
    policies.set({.first = Fid{UINT64_MAX}, .last = Fid{UINT64_MAX}}, SlowPolicy::block);
    EXPECT_EQ(policies.find(Fid{0}), SlowPolicy::drop);
    EXPECT_EQ(policies.find(Fid{UINT64_MAX - 1}), SlowPolicy::drop);
    EXPECT_EQ(policies.find(Fid{UINT64_MAX}), SlowPolicy::block);
    policies.set(all, std::nullopt);
    EXPECT_TRUE(policies.empty());
    EXPECT_EQ(policies.pieces(all, std::nullopt), std::vector{all});
}

TEST(SlowPolicies, AgreeWithAPlainArray) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random{seed};
        SlowPolicies policies;
        std::array<Policy, 20> plain{};
        const auto any_policy = [&]() -> Policy {
            const auto value = random() % 4;
            return value == 3 ? Policy{} : Policy{static_cast<SlowPolicy>(value)};
        };
        const auto any_range = [&] {
            const std::uint64_t first = random() % plain.size();
            return FidRange{.first = Fid{first},
                            .last = Fid{first + random() % (plain.size() - first)}};
        };
        for (int step = 0; step < 60; ++step) {
            const FidRange range = any_range();
            const Policy policy = any_policy();
            policies.set(range, policy);
            for (std::size_t i = to_integer(range.first); i <= to_integer(range.last); ++i)
                plain[i] = policy;
            for (std::size_t i = 0; i < plain.size(); ++i)
                ASSERT_EQ(policies.find(Fid{i}), plain[i]) << "seed " << seed << " fid " << i;
            const FidRange asked = any_range();
            const Policy which = any_policy();
            std::array<bool, 20> in_pieces{};
            for (const FidRange& piece : policies.pieces(asked, which)) {
                ASSERT_LE(piece.first, piece.last);
                for (std::size_t i = to_integer(piece.first); i <= to_integer(piece.last); ++i) {
                    ASSERT_FALSE(in_pieces.at(i)) << "twice";
                    in_pieces[i] = true;
                }
            }
            for (std::size_t i = 0; i < plain.size(); ++i) {
                ASSERT_EQ(in_pieces[i], contains(asked, Fid{i}) && plain[i] == which)
                    << "seed " << seed << " fid " << i;
            }
        }
    }
}

} // namespace
} // namespace netio::pubsub
