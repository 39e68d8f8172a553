// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/publication_outcome.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::publication_outcome_test {
namespace {

TEST(PublicationOutcome, CountsEachSubscriberWhereItBelongs) {
    PublicationOutcome outcome;
    EXPECT_TRUE(outcome.sent_to_all()) << "without subscribers";
    count(outcome, Fate::sent);
    count(outcome, Fate::sent);
    EXPECT_TRUE(outcome.sent_to_all());
    count(outcome, Fate::dropped);
    EXPECT_FALSE(outcome.sent_to_all());
    count(outcome, Fate::unsubscribed);
    count(outcome, Fate::lost);
    EXPECT_EQ(outcome, (PublicationOutcome{.sent = 2, .dropped = 1, .unsubscribed = 1, .lost = 1}));
    EXPECT_EQ(outcome.subscribers(), 5U);
}

} // namespace
} // namespace netio::pubsub::publication_outcome_test
