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
    EXPECT_TRUE(claim.may_write(standing(1, 9), false, start));
    EXPECT_TRUE(claim.may_write(standing(2, 1), false, start));
}

TEST(NameClaim, TheOneThatWasThereStandsBackBehindALaterOne) {
    NameClaim claim{1, seconds{10}};
    EXPECT_TRUE(claim.may_write({}, false, start));
    EXPECT_FALSE(claim.may_write(standing(2, 1), false, start));
    EXPECT_FALSE(claim.may_write(standing(2, 2), false, start + seconds{9}));
    EXPECT_FALSE(claim.may_write(standing(2, 2), false, start + seconds{18}));
}

TEST(NameClaim, ItComesBackWhenTheOtherDoesNotLiveAnyMore) {
    NameClaim claim{1, seconds{10}};
    claim.may_write({}, false, start);
    claim.may_write(standing(2, 1), false, start);
    EXPECT_TRUE(claim.may_write(standing(2, 1), false, start + seconds{10}));
}

TEST(NameClaim, ItComesBackWhenTheOtherHasWithdrawn) {
    NameClaim claim{1, seconds{10}};
    claim.may_write({}, false, start);
    claim.may_write(standing(2, 1), false, start);
    EXPECT_TRUE(claim.may_write({}, false, start + seconds{1}));
}

// Its text does not change there, and it may be its predecessor's that is read again.
TEST(NameClaim, WhereTheBoardEndsLeasesItComesBackWhenNothingStandsThere) {
    NameClaim claim{1, seconds{10}};
    claim.may_write({}, true, start);
    EXPECT_FALSE(claim.may_write(standing(2, 1), true, start));
    EXPECT_FALSE(claim.may_write(standing(2, 1), true, start + seconds{60}));
    EXPECT_TRUE(claim.may_write({}, true, start + seconds{61}));
    NameClaim later{3, seconds{10}};
    EXPECT_TRUE(later.may_write(standing(1, 1), true, start)) << "what its predecessor left";
}

} // namespace
} // namespace netio::pubsub
