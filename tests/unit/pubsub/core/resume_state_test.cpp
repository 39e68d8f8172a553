// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/frame_receiver.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::continuity_test {
namespace {

constexpr FidRange fids{.first = Fid{1}, .last = Fid{9}};

// One connection: the position of the publisher, then `messages` messages of fid 1.
std::uint64_t connect(ResumeState& resume_state, std::uint64_t position, int messages,
                      std::uint64_t gap = 0) {
    resume_state.begin_connection();
    resume_state.meet(resume_state.instance());
    const std::uint64_t lost = resume_state.take({.fid = Fid{1}, .count = position});
    resume_state.begin(fids);
    ArrivalCounter arrivals;
    for (int i = 0; i < messages; ++i)
        arrivals.add(Fid{1}, 10);
    if (gap > 0) arrivals.add_dropped(Fid{1}, gap);
    resume_state.end_connection(arrivals, false);
    return lost;
}

TEST(ResumeState, WhatWasPublishedBetweenTwoConnectionsIsLost) {
    ResumeState resume_state;
    resume_state.meet(7);
    EXPECT_EQ(connect(resume_state, 100, 5), 0U) << "no earlier connection";
    EXPECT_FALSE(resume_state.meet(7));
    EXPECT_EQ(connect(resume_state, 105, 3), 0U);
    EXPECT_EQ(connect(resume_state, 110, 0, 4), 2U);
    EXPECT_EQ(connect(resume_state, 115, 0), 1U) << "the gap was already reported";
}

TEST(ResumeState, ANewFidIsLostFromItsFirstMessage) {
    ResumeState resume_state;
    resume_state.meet(7);
    connect(resume_state, 0, 0);
    EXPECT_EQ(resume_state.take({.fid = Fid{2}, .count = 6}), 6U);
    EXPECT_EQ(resume_state.take({.fid = Fid{10}, .count = 6}), 0U) << "it was not subscribed";
}

TEST(ResumeState, WhatIsNotWantedAnyMoreIsNotLost) {
    ResumeState resume_state;
    resume_state.meet(7);
    connect(resume_state, 0, 5);
    resume_state.forget({.first = Fid{1}, .last = Fid{1}});
    EXPECT_EQ(resume_state.take({.fid = Fid{1}, .count = 50}), 0U);
    EXPECT_EQ(resume_state.take({.fid = Fid{2}, .count = 1}), 1U) << "but the others are";
}

// The connection may end before all subscriptions were requested again.
TEST(ResumeState, WhatWasNotResumedInOneConnectionIsInTheNext) {
    ResumeState resume_state;
    resume_state.meet(7);
    connect(resume_state, 0, 5);
    resume_state.begin_connection();
    resume_state.end_connection(ArrivalCounter{}, false);
    EXPECT_EQ(connect(resume_state, 9, 0), 4U);
}

TEST(ResumeState, AnotherPublisherResetsIt) {
    ResumeState resume_state;
    EXPECT_FALSE(resume_state.meet(7)) << "the first one";
    connect(resume_state, 0, 5);
    const auto change = resume_state.meet(8);
    EXPECT_EQ(change, (PublisherChange{.former = 7, .now = 8, .tail_known = false}));
    EXPECT_EQ(connect(resume_state, 50, 1), 0U);
    EXPECT_EQ(resume_state.instance(), 8U);
}

// After publisher 7, which sent its totals.
ResumeState behind_a_known_tail() {
    ResumeState resume_state;
    resume_state.meet(7);
    resume_state.begin_connection();
    ArrivalCounter arrivals;
    arrivals.complete_totals();
    resume_state.end_connection(arrivals, false);
    return resume_state;
}

TEST(ResumeState, TheTailOfAPublisherThatSentItsTotalsIsKnown) {
    ResumeState resume_state = behind_a_known_tail();
    EXPECT_TRUE(resume_state.meet(8)->tail_known);
    resume_state.begin_connection();
    resume_state.end_connection(ArrivalCounter{}, false);
    EXPECT_FALSE(resume_state.meet(9)->tail_known);
}

// Two new publishers in one connection: a correct peer does not do this, and then the tail is
// unknown.
TEST(ResumeState, TotalsOfOnePublisherDoNotCoverTheNext) {
    ResumeState resume_state = behind_a_known_tail();
    EXPECT_TRUE(resume_state.meet(8)->tail_known);
    EXPECT_FALSE(resume_state.meet(9)->tail_known);
}

TEST(ResumeState, AnotherPublisherCountsFromTheBeginning) {
    ResumeState resume_state;
    resume_state.meet(7);
    connect(resume_state, 5, 0);
    resume_state.begin_connection();
    resume_state.meet(8);
    EXPECT_FALSE(resume_state.knows(Fid{1}));
    EXPECT_EQ(resume_state.fids(), 0U);
    resume_state.begin(fids);
    resume_state.end_connection(ArrivalCounter{}, false);
    resume_state.begin_connection();
    resume_state.meet(8);
    EXPECT_EQ(resume_state.take({.fid = Fid{1}, .count = 8}), 8U);
}

// Totals cover only the current subscriptions, and the publisher may shut down before it gets them.
TEST(ResumeState, TheTailOfFidsNotRequestedAgainIsUnknown) {
    ResumeState resume_state;
    resume_state.meet(7);
    connect(resume_state, 0, 5);
    resume_state.begin_connection();
    ArrivalCounter arrivals;
    arrivals.complete_totals();
    resume_state.end_connection(arrivals, false);
    EXPECT_FALSE(resume_state.meet(8)->tail_known);
}

// The rights may have been reduced since the first grant.
TEST(ResumeState, ATailIsOpenUntilWhatWasCoveredIsGrantedAgain) {
    ResumeState resume_state;
    EXPECT_FALSE(resume_state.has_open_tail()) << "no connection yet";
    resume_state.begin_connection();
    resume_state.meet(7);
    resume_state.begin(fids);
    EXPECT_FALSE(resume_state.has_open_tail());
    resume_state.end_connection(ArrivalCounter{}, false);
    EXPECT_TRUE(resume_state.has_open_tail());
    resume_state.begin_connection();
    EXPECT_TRUE(resume_state.has_open_tail()) << "connected, but without a grant";
    resume_state.meet(7);
    resume_state.begin({.first = Fid{1}, .last = Fid{4}});
    EXPECT_TRUE(resume_state.has_open_tail()) << "for the other fids";
    resume_state.end_connection(ArrivalCounter{}, true);
    EXPECT_TRUE(resume_state.has_open_tail()) << "a regular close does not change this";
    resume_state.begin_connection();
    resume_state.meet(7);
    resume_state.begin(fids);
    EXPECT_FALSE(resume_state.has_open_tail());
    resume_state.end_connection(ArrivalCounter{}, true);
    EXPECT_FALSE(resume_state.has_open_tail());
}

TEST(ResumeState, ATailEndsWithTheTotalsOrWithTheWish) {
    ResumeState resume_state;
    resume_state.meet(7);
    resume_state.begin_connection();
    resume_state.begin(fids);
    ArrivalCounter arrivals;
    arrivals.complete_totals();
    resume_state.end_connection(arrivals, false);
    EXPECT_FALSE(resume_state.has_open_tail());
    connect(resume_state, 0, 5);
    EXPECT_TRUE(resume_state.has_open_tail());
    resume_state.forget(fids);
    EXPECT_FALSE(resume_state.has_open_tail());
}

TEST(ResumeState, AnUnsubscribedFidHasNoTailButKeepsItsPosition) {
    ResumeState resume_state;
    resume_state.meet(7);
    connect(resume_state, 0, 5);
    resume_state.begin_connection();
    resume_state.meet(7);
    resume_state.begin({.first = Fid{1}, .last = Fid{4}});
    resume_state.forget_tails(fids);
    EXPECT_FALSE(resume_state.has_open_tail());
    resume_state.end_connection(ArrivalCounter{}, false);
    EXPECT_TRUE(resume_state.has_open_tail()) << "the rest was not granted again";
    resume_state.forget_tails(fids);
    EXPECT_FALSE(resume_state.has_open_tail());
    EXPECT_EQ(resume_state.fids(), 0U);
}

// A socket that does not request positions, and subscribes again after a loss.
TEST(ResumeState, WithoutPositionsATailStaysOpen) {
    ResumeState resume_state;
    for (int i = 0; i < 2; ++i) {
        resume_state.begin_connection();
        resume_state.begin(fids);
        EXPECT_EQ(resume_state.has_open_tail(), i > 0);
        resume_state.end_connection(ArrivalCounter{}, false);
    }
    resume_state.begin_connection();
    resume_state.begin(fids);
    ArrivalCounter arrivals;
    arrivals.complete_totals();
    resume_state.end_connection(arrivals, true);
    EXPECT_TRUE(resume_state.has_open_tail());
}

TEST(ResumeState, AnAttemptThatFailedCountsNothingTwice) {
    ResumeState resume_state;
    resume_state.meet(7);
    ArrivalCounter arrivals;
    arrivals.add(Fid{1}, 10);
    resume_state.begin_connection();
    resume_state.begin(fids);
    resume_state.end_connection(arrivals, false);
    resume_state.end_connection(arrivals, false);
    EXPECT_EQ(resume_state.take({.fid = Fid{1}, .count = 2}), 1U);
}

} // namespace
} // namespace netio::pubsub::continuity_test
