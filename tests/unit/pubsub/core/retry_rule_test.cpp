// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/retry_rule.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::retry_rule_test {
namespace {

using Next = RetryRule::Next;
using Proof = RetryPolicy::Proof;
using Refusal = RetryPolicy::Refusal;

Closed ended(CloseReason reason, std::uint32_t required = 0) {
    return {.reason = reason, .detail = {}, .required_receive_bytes = required};
}

constexpr RetryRule::Wishes some{.any = true};

TEST(RetryRule, BeforeTheFirstAnswerItRetriesOnlyIfConfigured) {
    for (const bool wait : {false, true}) {
        const RetryRule rule{{.wait_for_publisher = wait, .reconnect = !wait}};
        EXPECT_EQ(rule.next(ended(CloseReason::refused), some), wait ? Next::wait : Next::nothing);
    }
}

TEST(RetryRule, AfterAConnectionItReconnectsOnlyIfConfigured) {
    for (const bool reconnect : {false, true}) {
        RetryRule rule{{.wait_for_publisher = !reconnect, .reconnect = reconnect}};
        rule.on_open();
        rule.on_closed(true);
        const Next expected = reconnect ? Next::wait : Next::nothing;
        EXPECT_EQ(rule.next(ended(CloseReason::lost), some), expected);
        EXPECT_EQ(rule.next(ended(CloseReason::orderly), {.any = true, .totals = true}), expected);
        EXPECT_EQ(rule.next(ended(CloseReason::local), some), Next::nothing);
        rule.conclude();
        EXPECT_EQ(rule.next(ended(CloseReason::refused), some),
                  reconnect ? Next::nothing : Next::wait);
    }
}

TEST(RetryRule, AfterAnOrderlyEndItStaysAwayIfConfigured) {
    RetryRule rule{{.reconnect = true, .reconnect_after_end = false}};
    rule.on_open();
    rule.on_closed(true);
    EXPECT_EQ(rule.next(ended(CloseReason::lost), some), Next::wait);
    EXPECT_EQ(rule.next(ended(CloseReason::unconfirmed), some), Next::wait);
    EXPECT_EQ(rule.next(ended(CloseReason::orderly), {.any = true, .totals = true}), Next::nothing);
    EXPECT_EQ(rule.next(ended(CloseReason::orderly), some), Next::at_once) << "an orderly close";
}

TEST(RetryRule, AfterAnIdleCloseItReconnectsAtOnceForANewWish) {
    RetryRule rule{{}};
    rule.on_open();
    rule.on_closed(true);
    EXPECT_EQ(rule.next(ended(CloseReason::orderly), some), Next::at_once);
    EXPECT_EQ(rule.next(ended(CloseReason::orderly), {}), Next::nothing);
}

TEST(RetryRule, ASecondImmediateRetryWithoutAnAnswerWaits) {
    const Duration first = std::chrono::milliseconds{100};
    RetryRule rule{{.back_off = {.first = first, .limit = 4 * first, .seed = 1}}};
    rule.on_answered();
    EXPECT_EQ(rule.wait(Next::at_once), Duration::zero());
    EXPECT_GE(rule.wait(Next::at_once), first);
    EXPECT_GE(rule.wait(Next::wait), 2 * first);
    rule.on_answered();
    EXPECT_LT(rule.wait(Next::wait), 2 * first);
}

TEST(RetryRule, APublisherThatNeverSaidAWordIsNotThereYet) {
    RetryRule rule{{}};
    rule.on_open();
    rule.on_closed(false);
    EXPECT_EQ(rule.next(ended(CloseReason::lost), some), Next::wait);
}

TEST(RetryRule, WhatOnlyAnotherConfigurationWouldMendIsNotTriedAgain) {
    RetryRule rule{{.receive_buffer_bytes = 1000, .receive_buffer_limit_bytes = 5000}};
    rule.begin_attempt();
    EXPECT_EQ(rule.next(ended(CloseReason::protocol_error), some), Next::nothing);
    rule.on_refused(Refusal::lasting);
    EXPECT_EQ(rule.next(ended(CloseReason::rejected), some), Next::nothing);
    EXPECT_EQ(rule.next(ended(CloseReason::rejected, 5001), some), Next::nothing);
    EXPECT_EQ(rule.next(ended(CloseReason::rejected, 5000), some), Next::wait);
    rule.on_refused(Refusal::passing);
    rule.on_refused(Refusal::lasting);
    EXPECT_EQ(rule.next(ended(CloseReason::rejected), some), Next::wait) << "another may accept it";
    rule.begin_attempt();
    EXPECT_EQ(rule.next(ended(CloseReason::rejected), some), Next::nothing);
}

TEST(RetryRule, AGateThatHasLetUsInBeforeIsTriedAgainIfWeAreToReconnect) {
    for (const bool reconnect : {false, true}) {
        for (const bool was_let_in : {false, true}) {
            RetryRule rule{{.reconnect = reconnect}};
            if (was_let_in) {
                rule.on_open();
                rule.on_closed(true);
                rule.conclude();
            }
            const Next expected = reconnect && was_let_in ? Next::wait : Next::nothing;
            for (int each = 0; each < 3; ++each) {
                rule.begin_attempt();
                rule.on_refused(Refusal::not_admitted);
                EXPECT_EQ(rule.next(ended(CloseReason::rejected), some), expected);
                rule.conclude();
            }
            rule.begin_attempt();
            rule.on_refused(Refusal::lasting);
            EXPECT_EQ(rule.next(ended(CloseReason::rejected), some), Next::nothing);
            EXPECT_EQ(rule.next(ended(CloseReason::not_admitted), some), Next::nothing)
                << "a peer that fails to authenticate is not the publisher";
        }
    }
}

TEST(RetryRule, AnUnauthenticatedPeerEndsNothingAfterAuthentication) {
    for (const bool reconnect : {false, true}) {
        RetryRule rule{{.reconnect = reconnect, .proof = Proof::by_key}};
        rule.on_open();
        rule.on_closed(true);
        rule.conclude();
        const Next expected = reconnect ? Next::wait : Next::nothing;
        for (const CloseReason reason :
             {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error}) {
            rule.begin_attempt();
            rule.on_refused(Refusal::lasting);
            EXPECT_EQ(rule.next(ended(reason), some), expected);
            rule.conclude();
        }
        EXPECT_EQ(rule.next(ended(CloseReason::local), some), Next::nothing);
    }
}

TEST(RetryRule, BuffersAreEnlargedOnceOnARouteAndWithinTheLimit) {
    RetryRule rule{{.receive_buffer_bytes = 1000, .receive_buffer_limit_bytes = 5000}};
    for (int route = 0; route < 2; ++route) {
        rule.begin_route();
        EXPECT_FALSE(rule.may_enlarge(ended(CloseReason::rejected, 1000)));
        EXPECT_FALSE(rule.may_enlarge(ended(CloseReason::rejected, 5001)));
        EXPECT_FALSE(rule.may_enlarge(ended(CloseReason::lost, 2000)));
        EXPECT_TRUE(rule.may_enlarge(ended(CloseReason::rejected, 2000)));
        EXPECT_EQ(rule.receive_buffer_bytes(), 2000U);
        EXPECT_FALSE(rule.may_enlarge(ended(CloseReason::rejected, 3000)));
    }
    rule.on_open();
    EXPECT_FALSE(rule.may_enlarge(ended(CloseReason::rejected, 4000)));
}

TEST(RetryRule, LargerBuffersAreKeptOnlyIfTheyLedToAConnection) {
    RetryRule rule{{.receive_buffer_bytes = 1000, .receive_buffer_limit_bytes = 5000}};
    rule.begin_attempt();
    rule.begin_route();
    EXPECT_TRUE(rule.may_enlarge(ended(CloseReason::rejected, 5000)));
    rule.begin_route();
    EXPECT_EQ(rule.receive_buffer_bytes(), 1000U) << "an unauthenticated peer may request more";
    EXPECT_TRUE(rule.may_enlarge(ended(CloseReason::rejected, 3000)));
    rule.on_open();
    rule.conclude();
    rule.begin_route();
    EXPECT_EQ(rule.receive_buffer_bytes(), 3000U);
}

} // namespace
} // namespace netio::pubsub::retry_rule_test
