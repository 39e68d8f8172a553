// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/name_claim.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

using std::chrono::seconds;

constexpr TimePoint start{seconds{1000}};

std::optional<Announcement> standing(std::uint64_t instance, std::uint64_t counter) {
    return Announcement{.name = "a", .instance = instance, .counter = counter};
}

TEST(NameClaim, ANewPublisherTakesTheNameFromWhatItsPredecessorLeft) {
    NameClaim claim{2, seconds{10}};
    EXPECT_TRUE(claim.may_write(standing(1, 9), start));
    EXPECT_TRUE(claim.may_write(standing(2, 1), start));
}

TEST(NameClaim, TheOneThatWasThereStandsBackBehindALaterOne) {
    NameClaim claim{1, seconds{10}};
    EXPECT_TRUE(claim.may_write({}, start));
    EXPECT_FALSE(claim.may_write(standing(2, 1), start));
    EXPECT_FALSE(claim.may_write(standing(2, 2), start + seconds{9}));
    EXPECT_FALSE(claim.may_write(standing(2, 2), start + seconds{18}));
}

TEST(NameClaim, ItComesBackWhenTheOtherDoesNotLiveAnyMore) {
    NameClaim claim{1, seconds{10}};
    claim.may_write({}, start);
    claim.may_write(standing(2, 1), start);
    EXPECT_TRUE(claim.may_write(standing(2, 1), start + seconds{10}));
}

TEST(NameClaim, ItComesBackWhenTheOtherHasWithdrawn) {
    NameClaim claim{1, seconds{10}};
    claim.may_write({}, start);
    claim.may_write(standing(2, 1), start);
    EXPECT_TRUE(claim.may_write({}, start + seconds{1}));
}

} // namespace
} // namespace netio::pubsub
