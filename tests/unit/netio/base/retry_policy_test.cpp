// SPDX-License-Identifier: Apache-2.0
#include "netio/base/back_off.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netio::outlook_test {
namespace {

using Proof = RetryPolicy::Proof;
using Refusal = RetryPolicy::Refusal;

constexpr std::array all_refusals{Refusal::lasting, Refusal::passing, Refusal::not_admitted};

Closed ended(CloseReason reason) {
    return {.reason = reason, .detail = {}, .required_receive_bytes = 0};
}

TEST(RetryPolicy, IsBadIfOnlyAnotherConfigurationWouldHelp) {
    for (const Proof proof : {Proof::none, Proof::by_key}) {
        RetryPolicy retry_policy{proof};
        for (const CloseReason reason :
             {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error})
            EXPECT_FALSE(retry_policy.may_change(ended(reason)));
        for (const CloseReason reason :
             {CloseReason::refused, CloseReason::connect_timeout, CloseReason::lost,
              CloseReason::handshake_timeout, CloseReason::unreachable, CloseReason::failed})
            EXPECT_TRUE(retry_policy.may_change(ended(reason)));
    }
}

TEST(RetryPolicy, OneRouteThatMayLetUsInLaterIsEnoughForAnAttempt) {
    RetryPolicy retry_policy{Proof::none};
    retry_policy.on_refused(Refusal::passing);
    retry_policy.on_refused(Refusal::lasting);
    EXPECT_TRUE(retry_policy.may_change(ended(CloseReason::rejected)));
    EXPECT_FALSE(retry_policy.may_change(ended(CloseReason::not_admitted)));
    retry_policy.begin_attempt();
    retry_policy.on_refused(Refusal::lasting);
    EXPECT_FALSE(retry_policy.may_change(ended(CloseReason::rejected)));
}

TEST(RetryPolicy, IsGoodIfAuthenticationSucceededBefore) {
    for (const bool was_let_in : {false, true}) {
        RetryPolicy retry_policy{Proof::none};
        if (was_let_in) retry_policy.on_admitted();
        retry_policy.begin_attempt();
        retry_policy.on_refused(Refusal::not_admitted);
        EXPECT_EQ(retry_policy.may_change(ended(CloseReason::rejected)), was_let_in);
    }
}

TEST(RetryPolicy, IsNotSpoiltOnceThePeerHasAuthenticated) {
    RetryPolicy retry_policy{Proof::by_key};
    retry_policy.on_admitted();
    for (const Refusal refusal : all_refusals) {
        retry_policy.begin_attempt();
        retry_policy.on_refused(refusal);
        for (const CloseReason reason :
             {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error,
              CloseReason::refused, CloseReason::handshake_timeout})
            EXPECT_TRUE(retry_policy.may_change(ended(reason)));
    }
}

TEST(RetryPolicy, WithoutAuthenticationAnyAnswerCounts) {
    RetryPolicy retry_policy{Proof::none};
    retry_policy.on_admitted();
    retry_policy.begin_attempt();
    retry_policy.on_refused(Refusal::lasting);
    for (const CloseReason reason :
         {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error})
        EXPECT_FALSE(retry_policy.may_change(ended(reason)));
}

} // namespace
} // namespace netio::outlook_test
