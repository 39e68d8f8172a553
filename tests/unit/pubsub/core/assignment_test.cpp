// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/assignment.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Order = Assignment::Order;

constexpr SourceId a{1};
constexpr SourceId b{2};

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}
Order ask(SourceId source, const FidRange& fids, Assignment::Policy policy = {}) {
    return {.source = source, .subscribe = true, .fids = fids, .policy = policy};
}
Order leave(SourceId source, const FidRange& fids) {
    return {.source = source, .subscribe = false, .fids = fids, .policy = {}};
}

class AssignmentTest : public testing::Test {
  protected:
    Assignment assignment;
    std::vector<Order> want(const FidRange& fids, Assignment::Policy policy = {}) {
        return assignment.want({&fids, 1}, policy).orders;
    }
    Assignment::Outcome claim(SourceId source, const FidRange& fids) {
        return assignment.claim(source, {&fids, 1});
    }
};

TEST_F(AssignmentTest, WhoIsKnownByAddressIsAskedForAllThatIsWanted) {
    want(range(1, 9), SlowPolicy::drop);
    EXPECT_THAT(assignment.add(a).orders, ElementsAre(ask(a, range(1, 9), SlowPolicy::drop)));
    EXPECT_THAT(want(range(20, 29)), ElementsAre(ask(a, range(20, 29))));
    EXPECT_THAT(assignment.unwant(range(5, 25)).orders,
                ElementsAre(leave(a, range(5, 9)), leave(a, range(20, 25))));
    EXPECT_THAT(assignment.remove(a).orders, IsEmpty());
}

TEST_F(AssignmentTest, WhoCannotBeReachedYieldsWhatOthersClaimToTheNextOfThem) {
    constexpr SourceId c{3};
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_THAT(assignment.yield(a, false).orders, IsEmpty()) << "nobody else has it";
    claim(b, range(0, 4));
    claim(c, range(3, 9));
    EXPECT_THAT(assignment.yield(a, false).orders,
                UnorderedElementsAre(leave(a, range(0, 4)), ask(b, range(0, 4)),
                                     leave(a, range(5, 9)), ask(c, range(5, 9))));
    EXPECT_THAT(assignment.yield(b, false).orders,
                UnorderedElementsAre(leave(b, range(3, 4)), ask(c, range(3, 4)),
                                     leave(b, range(0, 2)), ask(a, range(0, 2))));
    EXPECT_THAT(assignment.yield(c, false).orders,
                UnorderedElementsAre(leave(c, range(3, 9)), ask(a, range(3, 9))));
}

TEST_F(AssignmentTest, WhoIsRefusedForGoodOwnsNothingUntilItClaimsAgain) {
    want(range(0, 100));
    claim(a, range(0, 9));
    EXPECT_THAT(assignment.yield(a, true).orders, IsEmpty());
    EXPECT_THAT(want(range(0, 3), SlowPolicy::drop), IsEmpty());
    const Assignment::Outcome outcome = claim(b, range(0, 9));
    EXPECT_THAT(outcome.contests, IsEmpty());
    EXPECT_EQ(outcome.orders.front().source, b);
    EXPECT_THAT(assignment.remove(b).orders, IsEmpty());
    EXPECT_EQ(claim(a, range(0, 9)).orders.front().source, a);
}

TEST_F(AssignmentTest, WhoIsFoundIsAskedForWhatItHasOfWhatIsWanted) {
    want(range(5, 14));
    EXPECT_THAT(claim(a, range(0, 9)).orders, ElementsAre(ask(a, range(5, 9))));
    EXPECT_THAT(claim(b, range(10, 19)).orders, ElementsAre(ask(b, range(10, 14))));
    EXPECT_THAT(want(range(9, 15), SlowPolicy::drop),
                ElementsAre(ask(a, range(9, 9), SlowPolicy::drop),
                            ask(b, range(10, 15), SlowPolicy::drop)));
    EXPECT_THAT(claim(a, range(0, 9)).orders, IsEmpty()) << "it says the same again";
}

TEST_F(AssignmentTest, OfTwoThatClaimAFidTheFirstHasItUntilItIsGone) {
    want(range(0, 100));
    claim(a, range(0, 9));
    const Assignment::Outcome outcome = claim(b, range(5, 14));
    EXPECT_THAT(outcome.orders, ElementsAre(ask(b, range(10, 14))));
    EXPECT_THAT(outcome.contests,
                ElementsAre(Assignment::Contest{.fids = range(5, 9), .owner = a, .other = b}));
    EXPECT_THAT(assignment.remove(a).orders, ElementsAre(ask(b, range(5, 9))));
}

TEST_F(AssignmentTest, AFidThatMovesIsFollowed) {
    want(range(0, 100));
    claim(a, range(0, 9));
    claim(b, range(10, 19));
    EXPECT_THAT(claim(a, range(0, 4)).orders, ElementsAre(leave(a, range(5, 9))));
    EXPECT_THAT(claim(b, range(5, 19)).orders, ElementsAre(ask(b, range(5, 9))));
    // The other way round: it is claimed before it is given up.
    EXPECT_THAT(claim(a, range(0, 9)).orders, IsEmpty());
    EXPECT_THAT(claim(b, range(10, 19)).orders,
                UnorderedElementsAre(leave(b, range(5, 9)), ask(a, range(5, 9))));
}

TEST_F(AssignmentTest, WhatIsWantedLaterIsAskedOfThoseThatAreThere) {
    claim(a, range(0, 9));
    EXPECT_THAT(claim(b, range(0, 9)).contests, IsEmpty()) << "nobody wants it";
    EXPECT_THAT(want(range(3, 3)), ElementsAre(ask(a, range(3, 3))));
    EXPECT_TRUE(!assignment.empty());
}

} // namespace
} // namespace netio::pubsub
