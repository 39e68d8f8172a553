// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/subscriber_account.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub {
namespace {

TEST(SubscriberAccount, TheMostThatWaitedBeginsAnewWithWhatWaitsNow) {
    SubscriberAccount account{TimePoint{}};
    EXPECT_EQ(account.take_most_waiting(0), 0U);
    account.note_waiting(5);
    account.note_waiting(9);
    account.note_waiting(3);
    EXPECT_EQ(account.take_most_waiting(3), 9U);
    EXPECT_EQ(account.take_most_waiting(1), 3U) << "which waited when it began anew";
    EXPECT_EQ(account.take_most_waiting(4), 4U) << "though nobody has noted it";
}

TEST(SubscriberAccount, TheFewestReceivesBeginAnewWithThoseThatAreFreeNow) {
    SubscriberAccount account{TimePoint{}};
    EXPECT_EQ(account.take_least_credits(8), 8U) << "nothing was sent";
    account.note_credits(5);
    account.note_credits(2);
    account.note_credits(6);
    EXPECT_EQ(account.take_least_credits(7), 2U);
    EXPECT_EQ(account.take_least_credits(8), 7U) << "which were free when it began anew";
    EXPECT_EQ(account.take_least_credits(4), 4U) << "though nobody has noted it";
}

TEST(SubscriberAccount, AddsUpWhatWasMissedAndHowLongFramesTook) {
    SubscriberAccount account{TimePoint{std::chrono::seconds{7}}};
    account.note_missed(3);
    account.note_missed(4);
    account.note_sent(std::chrono::microseconds{10});
    EXPECT_EQ(account.missed(), 7U);
    EXPECT_EQ(account.latency().count(), 1U);
    EXPECT_EQ(account.since(), TimePoint{std::chrono::seconds{7}});
}

} // namespace
} // namespace netio::pubsub
