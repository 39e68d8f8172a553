// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/assignment.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Order = Assignment::Order;
using Contest = Assignment::Contest;

constexpr SourceId a{1};
constexpr SourceId b{2};
constexpr SourceId c{3};

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}
Order ask(SourceId source, const FidRange& fids) {
    return {.source = source, .subscribe = true, .fids = fids, .policy = {}};
}
Order leave(SourceId source, const FidRange& fids) {
    return {.source = source, .subscribe = false, .fids = fids, .policy = {}};
}

// Those of its calls that take several ranges, with one; and what it comes to when all changes have
// ended.
class Desk : public Assignment {
  public:
    explicit Desk(std::size_t slice = usual_slice) : Assignment{slice} {}
    using Assignment::claim;

    Outcome want(const FidRange& fids) { return Assignment::want({&fids, 1}, {}); }
    Outcome claim(SourceId source, const FidRange& fids) {
        return Assignment::claim(source, {&fids, 1});
    }
    Outcome settle(Outcome outcome = {}) {
        while (!is_settled()) {
            const Outcome more = advance();
            outcome.orders.insert(outcome.orders.end(), more.orders.begin(), more.orders.end());
            outcome.contests.insert(outcome.contests.end(), more.contests.begin(),
                                    more.contests.end());
        }
        return outcome;
    }
};

TEST(AssignmentRules, WhoIsRemovedIsAskedForNothingMore) {
    Desk desk;
    desk.add(a);
    desk.claim(b, range(0, 9));
    desk.remove(a);
    desk.remove(b);
    EXPECT_FALSE(desk.is_claimant(b));
    EXPECT_THAT(desk.want(range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(desk.unwant(range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(desk.advance().orders, IsEmpty()) << "nothing is left to be done";
}

TEST(AssignmentRules, WhoComesBackHasToProveItselfAnew) {
    Desk desk;
    desk.want(range(0, 9));
    desk.claim(a, range(0, 9));
    desk.reach(a);
    desk.claim(b, range(0, 9));
    ASSERT_TRUE(desk.is_contested(a));
    EXPECT_THAT(desk.remove(a).orders, ElementsAre(ask(b, range(0, 9))));
    EXPECT_FALSE(desk.is_contested(a)) << "that was of its former life";
    EXPECT_THAT(desk.claim(a, range(0, 9)).orders, IsEmpty());
}

TEST(AssignmentRules, WhoIsRefusedForGoodIsNotContestedAnyMore) {
    Desk desk;
    desk.want(range(0, 9));
    desk.claim(a, range(0, 9));
    desk.claim(b, range(0, 9));
    ASSERT_TRUE(desk.is_contested(b));
    ASSERT_TRUE(desk.is_claimant(b));
    desk.yield(b, true);
    EXPECT_FALSE(desk.is_contested(b));
    EXPECT_FALSE(desk.is_claimant(b));
}

TEST(AssignmentRules, WhoClaimsNothingProvesNothing) {
    Desk desk;
    desk.want(range(0, 9));
    desk.claim(a, range(0, 9));
    EXPECT_THAT(desk.reach(b).orders, IsEmpty());
    EXPECT_THAT(desk.claim(b, range(0, 9)).orders, IsEmpty()) << "it has to say so again";
}

TEST(AssignmentRules, WhatAllFidsAreCountedAsIsTheLargestNumber) {
    Desk desk;
    const FidRange all = range(0, UINT64_MAX);
    desk.want(all);
    desk.claim(a, all);
    EXPECT_THAT(desk.claim(b, all).contests,
                ElementsAre(Contest{.owner = a, .other = b, .first = all, .fids = UINT64_MAX}));
}

TEST(AssignmentRules, AContestIsToldWithTheChangeThatBringsItAndNotWithTheNext) {
    Desk desk;
    desk.want(range(0, 100));
    desk.claim(a, range(0, 9));
    EXPECT_THAT(desk.claim(b, range(0, 9)).contests, testing::SizeIs(1));
    EXPECT_THAT(desk.claim(b, std::vector{range(0, 9), range(20, 29)}).contests, IsEmpty());
}

// --- between two slices ---------------------------------------------------------------------

const std::vector<FidRange> several{range(0, 0), range(2, 2), range(4, 4), range(6, 6)};

TEST(AssignmentBetweenSlices, WhatOneClaimsIsWhatItHasSaidLast) {
    Desk desk{1};
    desk.want(range(0, 100));
    EXPECT_THAT(desk.claimed(a), IsEmpty());
    desk.claim(a, several);
    ASSERT_FALSE(desk.is_settled());
    EXPECT_EQ(desk.claimed(a), several);
    desk.settle();
    EXPECT_EQ(desk.claimed(a), several);
    desk.settle(desk.claim(a, range(9, 9)));
    EXPECT_THAT(desk.claimed(a), ElementsAre(range(9, 9)));
}

TEST(AssignmentBetweenSlices, WhoClaimsAnewBeginsAtTheLowestFidAgain) {
    Desk desk{1};
    desk.want(range(0, 100));
    ASSERT_THAT(desk.claim(a, several).orders, ElementsAre(ask(a, range(0, 0))));
    EXPECT_THAT(desk.settle(desk.claim(a, range(1, 1))).orders,
                UnorderedElementsAre(leave(a, range(0, 0)), ask(a, range(1, 1))));
}

TEST(AssignmentBetweenSlices, WhoIsRemovedBeforeItsClaimIsCarriedOutKeepsNoneOfIt) {
    Desk desk{1};
    desk.want(range(0, 100));
    desk.claim(a, several);
    ASSERT_FALSE(desk.is_settled());
    EXPECT_THAT(desk.settle(desk.remove(a)).orders, IsEmpty());
    EXPECT_THAT(desk.settle(desk.claim(b, several)).orders,
                ElementsAre(ask(b, range(0, 0)), ask(b, range(2, 2)), ask(b, range(4, 4)),
                            ask(b, range(6, 6))));
}

// The one has given up what it does not claim any more as far as its change goes; beyond that it
// claims what it did before. The border lies inside what it had, or where that ends.
TEST(AssignmentBetweenSlices, OneClaimsTheNewUpToTheBorderAndTheOldBeyond) {
    const std::vector<std::vector<FidRange>> before{{range(0, 50)}, {range(0, 19), range(30, 50)}};
    for (const std::vector<FidRange>& old : before) {
        Desk desk{1};
        desk.want(range(0, 100));
        desk.settle(desk.claim(b, old));
        desk.settle(desk.claim(a, range(0, 60)));
        EXPECT_THAT(desk.claim(b, std::vector{range(5, 9), range(20, 29)}).orders,
                    UnorderedElementsAre(leave(b, range(0, 4)), leave(b, range(10, 19)),
                                         ask(a, range(0, 4)), ask(a, range(10, 19))));
        ASSERT_FALSE(desk.is_settled());
        const FidRange rest = old.back();
        EXPECT_THAT(desk.ask(b).orders,
                    ElementsAre(ask(b, range(5, 9)),
                                ask(b, range(std::max<std::uint64_t>(20, to_integer(rest.first)),
                                             to_integer(rest.last)))));
        EXPECT_THAT(desk.yield(a, false).orders, IsEmpty())
            << "of what it has the other one claims nothing now";
    }
}

// `a` has said that it leaves, and has released the first of its fids only.
class AssignmentOfOneThatLeaves : public testing::Test {
  protected:
    AssignmentOfOneThatLeaves() {
        desk.want(range(0, 100));
        desk.claim(c, range(8, 8));
        desk.reach(c);
        desk.settle(desk.claim(a, std::vector{range(0, 0), range(2, 2), range(4, 4), range(8, 8)}));
        desk.reach(a);
        desk.settle(desk.claim(b, std::vector{range(2, 2), range(8, 8)}));
        desk.reach(b);
        desk.remove(a);
        EXPECT_FALSE(desk.is_settled());
    }
    Desk desk{1};
};

TEST_F(AssignmentOfOneThatLeaves, WhatAnotherGivesUpIsNotItsAnyMore) {
    desk.lose(b); // else it would come first anyhow
    EXPECT_THAT(desk.yield(c, false).orders,
                ElementsAre(leave(c, range(8, 8)), ask(b, range(8, 8))));
}

TEST_F(AssignmentOfOneThatLeaves, WhatItProvesDoesNotCount) {
    desk.lose(c);
    EXPECT_THAT(desk.reach(a).orders, IsEmpty());
}

TEST_F(AssignmentOfOneThatLeaves, WhatItHasGoesWithItsChangeAndOnce) {
    EXPECT_THAT(desk.doubt(a).orders, IsEmpty());
    EXPECT_THAT(desk.yield(a, false).orders, IsEmpty());
    EXPECT_THAT(desk.yield(a, true).orders, IsEmpty());
    EXPECT_THAT(desk.settle().orders, ElementsAre(ask(b, range(2, 2))));
    EXPECT_FALSE(desk.is_claimant(a));
    EXPECT_THAT(
        desk.claim(c, range(4, 4)).orders,
        UnorderedElementsAre(leave(c, range(8, 8)), ask(b, range(8, 8)), ask(c, range(4, 4))))
        << "nobody has that one any more";
}

TEST_F(AssignmentOfOneThatLeaves, ItContestsNothing) {
    constexpr SourceId d{4};
    EXPECT_THAT(desk.claim(d, range(4, 4)).contests, IsEmpty());
    EXPECT_FALSE(desk.is_contested(d));
}

TEST(AssignmentBetweenSlices, OfAContestWithOneThatHasGoneMeanwhileNothingIsTold) {
    using End = Assignment::Outcome (*)(Desk&);
    for (const End end : {End{[](Desk& it) { return it.remove(a); }},
                          End{[](Desk& it) { return it.yield(a, true); }}}) {
        Desk desk{1};
        desk.want(range(0, 100));
        desk.settle(desk.claim(a, several));
        EXPECT_THAT(desk.claim(b, several).contests, IsEmpty()) << "at the end of the change";
        ASSERT_TRUE(desk.is_contested(b));
        EXPECT_THAT(desk.settle(end(desk)).contests, IsEmpty());
    }
}

} // namespace
} // namespace netio::pubsub
