// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/continuity.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::continuity_test {
namespace {

constexpr FidRange fids{.first = Fid{1}, .last = Fid{9}};

// One connection: the position of the publisher, then `messages` messages of fid 1.
std::uint64_t connect(Continuity& continuity, std::uint64_t position, int messages,
                      std::uint64_t gap = 0) {
    continuity.begin_connection();
    continuity.meet(continuity.instance());
    const std::uint64_t missed = continuity.take({.fid = Fid{1}, .count = position});
    continuity.begin(fids);
    ArrivalCounter arrivals;
    for (int i = 0; i < messages; ++i)
        arrivals.add(Fid{1}, 10);
    if (gap > 0) arrivals.add_missed(Fid{1}, gap);
    continuity.end_connection(arrivals, false);
    return missed;
}

TEST(Continuity, WhatWasPublishedBetweenTwoConnectionsIsMissed) {
    Continuity continuity;
    continuity.meet(7);
    EXPECT_EQ(connect(continuity, 100, 5), 0U) << "no earlier connection";
    EXPECT_FALSE(continuity.meet(7));
    EXPECT_EQ(connect(continuity, 105, 3), 0U);
    EXPECT_EQ(connect(continuity, 110, 0, 4), 2U);
    EXPECT_EQ(connect(continuity, 115, 0), 1U) << "the gap was already reported";
}

TEST(Continuity, ANewFidIsMissedFromItsFirstMessage) {
    Continuity continuity;
    continuity.meet(7);
    connect(continuity, 0, 0);
    EXPECT_EQ(continuity.take({.fid = Fid{2}, .count = 6}), 6U);
    EXPECT_EQ(continuity.take({.fid = Fid{10}, .count = 6}), 0U) << "it was not subscribed";
}

TEST(Continuity, WhatIsNotWantedAnyMoreIsNotMissed) {
    Continuity continuity;
    continuity.meet(7);
    connect(continuity, 0, 5);
    continuity.forget({.first = Fid{1}, .last = Fid{1}});
    EXPECT_EQ(continuity.take({.fid = Fid{1}, .count = 50}), 0U);
    EXPECT_EQ(continuity.take({.fid = Fid{2}, .count = 1}), 1U) << "but the others are";
}

// The connection may end before all subscriptions were requested again.
TEST(Continuity, WhatWasNotResumedInOneConnectionIsInTheNext) {
    Continuity continuity;
    continuity.meet(7);
    connect(continuity, 0, 5);
    continuity.begin_connection();
    continuity.end_connection(ArrivalCounter{}, false);
    EXPECT_EQ(connect(continuity, 9, 0), 4U);
}

TEST(Continuity, AnotherPublisherResetsIt) {
    Continuity continuity;
    EXPECT_FALSE(continuity.meet(7)) << "the first one";
    connect(continuity, 0, 5);
    const auto change = continuity.meet(8);
    EXPECT_EQ(change, (PublisherChange{.former = 7, .now = 8, .tail_known = false}));
    EXPECT_EQ(connect(continuity, 50, 1), 0U);
    EXPECT_EQ(continuity.instance(), 8U);
}

// After publisher 7, which sent its totals.
Continuity behind_a_known_tail() {
    Continuity continuity;
    continuity.meet(7);
    continuity.begin_connection();
    ArrivalCounter arrivals;
    arrivals.complete_books();
    continuity.end_connection(arrivals, false);
    return continuity;
}

TEST(Continuity, TheTailOfAPublisherThatSentItsTotalsIsKnown) {
    Continuity continuity = behind_a_known_tail();
    EXPECT_TRUE(continuity.meet(8)->tail_known);
    continuity.begin_connection();
    continuity.end_connection(ArrivalCounter{}, false);
    EXPECT_FALSE(continuity.meet(9)->tail_known);
}

// Two new publishers in one connection: a correct peer does not do this, and then the tail is
// unknown.
TEST(Continuity, TotalsOfOnePublisherDoNotCoverTheNext) {
    Continuity continuity = behind_a_known_tail();
    EXPECT_TRUE(continuity.meet(8)->tail_known);
    EXPECT_FALSE(continuity.meet(9)->tail_known);
}

TEST(Continuity, AnotherPublisherCountsFromTheBeginning) {
    Continuity continuity;
    continuity.meet(7);
    connect(continuity, 5, 0);
    continuity.begin_connection();
    continuity.meet(8);
    EXPECT_FALSE(continuity.knows(Fid{1}));
    EXPECT_EQ(continuity.fids(), 0U);
    continuity.begin(fids);
    continuity.end_connection(ArrivalCounter{}, false);
    continuity.begin_connection();
    continuity.meet(8);
    EXPECT_EQ(continuity.take({.fid = Fid{1}, .count = 8}), 8U);
}

// Totals cover only the current subscriptions, and the publisher may shut down before it gets them.
TEST(Continuity, TheTailOfFidsNotRequestedAgainIsUnknown) {
    Continuity continuity;
    continuity.meet(7);
    connect(continuity, 0, 5);
    continuity.begin_connection();
    ArrivalCounter arrivals;
    arrivals.complete_books();
    continuity.end_connection(arrivals, false);
    EXPECT_FALSE(continuity.meet(8)->tail_known);
}

// The rights may have been reduced since the first grant.
TEST(Continuity, ATailIsOpenUntilWhatWasCoveredIsGrantedAgain) {
    Continuity continuity;
    EXPECT_FALSE(continuity.has_open_tail()) << "no connection yet";
    continuity.begin_connection();
    continuity.meet(7);
    continuity.begin(fids);
    EXPECT_FALSE(continuity.has_open_tail());
    continuity.end_connection(ArrivalCounter{}, false);
    EXPECT_TRUE(continuity.has_open_tail());
    continuity.begin_connection();
    EXPECT_TRUE(continuity.has_open_tail()) << "connected, but without a grant";
    continuity.meet(7);
    continuity.begin({.first = Fid{1}, .last = Fid{4}});
    EXPECT_TRUE(continuity.has_open_tail()) << "for the other fids";
    continuity.end_connection(ArrivalCounter{}, true);
    EXPECT_TRUE(continuity.has_open_tail()) << "a regular close does not change this";
    continuity.begin_connection();
    continuity.meet(7);
    continuity.begin(fids);
    EXPECT_FALSE(continuity.has_open_tail());
    continuity.end_connection(ArrivalCounter{}, true);
    EXPECT_FALSE(continuity.has_open_tail());
}

TEST(Continuity, ATailEndsWithTheTotalsOrWithTheWish) {
    Continuity continuity;
    continuity.meet(7);
    continuity.begin_connection();
    continuity.begin(fids);
    ArrivalCounter arrivals;
    arrivals.complete_books();
    continuity.end_connection(arrivals, false);
    EXPECT_FALSE(continuity.has_open_tail());
    connect(continuity, 0, 5);
    EXPECT_TRUE(continuity.has_open_tail());
    continuity.forget(fids);
    EXPECT_FALSE(continuity.has_open_tail());
}

TEST(Continuity, AnUnsubscribedFidHasNoTailButKeepsItsPosition) {
    Continuity continuity;
    continuity.meet(7);
    connect(continuity, 0, 5);
    continuity.begin_connection();
    continuity.meet(7);
    continuity.begin({.first = Fid{1}, .last = Fid{4}});
    continuity.forget_tails(fids);
    EXPECT_FALSE(continuity.has_open_tail());
    continuity.end_connection(ArrivalCounter{}, false);
    EXPECT_TRUE(continuity.has_open_tail()) << "the rest was not granted again";
    continuity.forget_tails(fids);
    EXPECT_FALSE(continuity.has_open_tail());
    EXPECT_EQ(continuity.fids(), 0U);
}

// A socket that does not request positions, and subscribes again after a loss.
TEST(Continuity, WithoutPositionsATailStaysOpen) {
    Continuity continuity;
    for (int i = 0; i < 2; ++i) {
        continuity.begin_connection();
        continuity.begin(fids);
        EXPECT_EQ(continuity.has_open_tail(), i > 0);
        continuity.end_connection(ArrivalCounter{}, false);
    }
    continuity.begin_connection();
    continuity.begin(fids);
    ArrivalCounter arrivals;
    arrivals.complete_books();
    continuity.end_connection(arrivals, true);
    EXPECT_TRUE(continuity.has_open_tail());
}

TEST(Continuity, AnAttemptThatFailedCountsNothingTwice) {
    Continuity continuity;
    continuity.meet(7);
    ArrivalCounter arrivals;
    arrivals.add(Fid{1}, 10);
    continuity.begin_connection();
    continuity.begin(fids);
    continuity.end_connection(arrivals, false);
    continuity.end_connection(arrivals, false);
    EXPECT_EQ(continuity.take({.fid = Fid{1}, .count = 2}), 1U);
}

} // namespace
} // namespace netio::pubsub::continuity_test
