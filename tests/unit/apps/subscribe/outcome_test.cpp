// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/subscribe.hpp"

#include <gtest/gtest.h>

namespace apps::subscribe::outcome_test {
namespace {

SubscribeReport ended(const std::string& end) {
    SubscribeReport report;
    report.end = end;
    report.reached.any = true;
    report.throughput.messages = 10;
    report.lost = 0;
    return report;
}

TEST(Outcome, TheRequestedEndIsDone) {
    EXPECT_EQ(outcome(ended("orderly"), {}), ExitStatus::done);
    EXPECT_EQ(outcome(ended("messages"), {.messages = true}), ExitStatus::done);
    EXPECT_EQ(outcome(ended("duration"), {.duration = true}), ExitStatus::done);
    EXPECT_EQ(outcome(ended("interrupted"), {.sound = true}), ExitStatus::done)
        << "the usual end of a verification";
}

TEST(Outcome, NeverConnectedIsReportedWhateverEndedIt) {
    for (const auto* end : {"duration", "interrupted", "lost"}) {
        SubscribeReport report = ended(end);
        report.reached.any = false;
        report.throughput.messages = 0;
        EXPECT_EQ(outcome(report, {.duration = true}), ExitStatus::unreached) << end;
    }
}

TEST(Answers, ADurationIsExtendedUntilTheFirstOutcome) {
    Answers answers{{"a", "b"}};
    EXPECT_FALSE(answers.is_hopeless(false)) << "the duration has not passed";
    EXPECT_TRUE(answers.extend(true));
    EXPECT_FALSE(answers.extend(true)) << "once";
    answers.ended("a");
    EXPECT_TRUE(answers.is_tried("a"));
    EXPECT_FALSE(answers.is_tried("b"));
    EXPECT_FALSE(answers.is_hopeless(true));
    EXPECT_TRUE(answers.is_hopeless(false));
    EXPECT_TRUE(answers.accepted("b")) << "the duration begins";
    EXPECT_FALSE(answers.accepted("b"));
    EXPECT_FALSE(answers.extend(true));
    EXPECT_EQ(answers.unreached(), 1U);
}

TEST(Answers, ADurationIsNotExtendedIfNoAnswerCanCome) {
    Answers answers{{"a"}};
    EXPECT_FALSE(answers.extend(false));
    EXPECT_FALSE(answers.any());
    EXPECT_EQ(answers.unreached(), 1U);
}

TEST(Outcome, NothingIsNotASuccess) {
    SubscribeReport report = ended("duration");
    report.throughput.messages = 0;
    EXPECT_EQ(outcome(report, {.duration = true}), ExitStatus::nothing);
}

TEST(Outcome, AnEndBeforeTheRequestedNumberIsIncomplete) {
    EXPECT_EQ(outcome(ended("lost"), {}), ExitStatus::incomplete);
    EXPECT_EQ(outcome(ended("interrupted"), {.messages = true}), ExitStatus::incomplete);
    EXPECT_EQ(outcome(ended("interrupted"), {.duration = true}), ExitStatus::incomplete);
    EXPECT_EQ(outcome(ended("duration"), {.messages = true, .duration = true}),
              ExitStatus::incomplete);
    EXPECT_EQ(outcome(ended("orderly"), {.messages = true}), ExitStatus::incomplete);
    EXPECT_EQ(outcome(ended("orderly"), {.duration = true}), ExitStatus::done) << "no more data";
}

TEST(Outcome, LossAndSurplusCountIfCompletenessIsRequired) {
    SubscribeReport lossy = ended("orderly");
    lossy.lost = 1;
    EXPECT_EQ(outcome(lossy, {.sound = true}), ExitStatus::unsound);
    SubscribeReport doubled = ended("orderly");
    doubled.surplus = 1;
    EXPECT_EQ(outcome(doubled, {.sound = true}), ExitStatus::unsound);
    SubscribeReport damaged = ended("messages");
    damaged.pattern.corrupt = 1;
    EXPECT_EQ(outcome(damaged, {.messages = true, .sound = true}), ExitStatus::unsound);
}

TEST(Outcome, WhatIsKnownToBeMissingIsIncompleteWhateverTheEnd) {
    for (const auto* end : {"orderly", "interrupted", "duration", "messages"}) {
        SubscribeReport lossy = ended(end);
        lossy.lost = 1;
        EXPECT_EQ(outcome(lossy, {}), ExitStatus::incomplete) << end;
        EXPECT_EQ(outcome(lossy, {.sound = true}), ExitStatus::unsound) << end;
        lossy.throughput.messages = 0;
        EXPECT_EQ(outcome(lossy, {}), ExitStatus::incomplete) << end << ", and no message arrived";
    }
}

TEST(Outcome, APublisherThatWasNeverReachedIsIncompleteWhateverTheEnd) {
    for (const auto* end : {"orderly", "interrupted", "duration", "messages"}) {
        SubscribeReport report = ended(end);
        report.reached.unreached = 1;
        report.lost.reset();
        EXPECT_EQ(outcome(report, {.messages = end == std::string{"messages"}}),
                  ExitStatus::incomplete)
            << end;
    }
}

TEST(Outcome, EveryFaultThatVerificationFindsIsUnsound) {
    for (const PatternCounts& found :
         {PatternCounts{.lost = 1}, PatternCounts{.reordered = 1}, PatternCounts{.duplicates = 1},
          PatternCounts{.corrupt = 1}, PatternCounts{.truncated = 1}}) {
        SubscribeReport report = ended("orderly");
        report.pattern = found;
        EXPECT_EQ(outcome(report, {.sound = true}), ExitStatus::unsound);
    }
}

TEST(Outcome, AnErrorIsAFailureWhateverElse) {
    EXPECT_EQ(outcome(ended("failed"), {}), ExitStatus::failed);
    EXPECT_EQ(outcome(ended("refused"), {}), ExitStatus::failed);
}

} // namespace
} // namespace apps::subscribe::outcome_test
