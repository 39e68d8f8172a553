// SPDX-License-Identifier: Apache-2.0
#include "netio/base/outlook.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netio::outlook_test {
namespace {

using Proof = Outlook::Proof;
using Refusal = Outlook::Refusal;

constexpr std::array all_refusals{Refusal::lasting, Refusal::passing, Refusal::by_gate};

Closed ended(CloseReason reason) {
    return {.reason = reason, .detail = {}, .required_receive_bytes = 0};
}

TEST(Outlook, IsBadIfOnlyAnotherConfigurationWouldHelp) {
    for (const Proof proof : {Proof::none, Proof::by_key}) {
        Outlook outlook{proof};
        for (const CloseReason reason :
             {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error})
            EXPECT_FALSE(outlook.may_change(ended(reason)));
        for (const CloseReason reason :
             {CloseReason::refused, CloseReason::connect_timeout, CloseReason::lost,
              CloseReason::handshake_timeout, CloseReason::unreachable, CloseReason::failed})
            EXPECT_TRUE(outlook.may_change(ended(reason)));
    }
}

TEST(Outlook, OneRouteThatMayLetUsInLaterIsEnoughForAnAttempt) {
    Outlook outlook{Proof::none};
    outlook.on_refused(Refusal::passing);
    outlook.on_refused(Refusal::lasting);
    EXPECT_TRUE(outlook.may_change(ended(CloseReason::rejected)));
    EXPECT_FALSE(outlook.may_change(ended(CloseReason::not_admitted)));
    outlook.begin_attempt();
    outlook.on_refused(Refusal::lasting);
    EXPECT_FALSE(outlook.may_change(ended(CloseReason::rejected)));
}

TEST(Outlook, IsGoodIfAuthenticationSucceededBefore) {
    for (const bool was_let_in : {false, true}) {
        Outlook outlook{Proof::none};
        if (was_let_in) outlook.on_let_in();
        outlook.begin_attempt();
        outlook.on_refused(Refusal::by_gate);
        EXPECT_EQ(outlook.may_change(ended(CloseReason::rejected)), was_let_in);
    }
}

TEST(Outlook, IsNotSpoiltOnceThePeerHasAuthenticated) {
    Outlook outlook{Proof::by_key};
    outlook.on_let_in();
    for (const Refusal refusal : all_refusals) {
        outlook.begin_attempt();
        outlook.on_refused(refusal);
        for (const CloseReason reason :
             {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error,
              CloseReason::refused, CloseReason::handshake_timeout})
            EXPECT_TRUE(outlook.may_change(ended(reason)));
    }
}

TEST(Outlook, WithoutAuthenticationAnyAnswerCounts) {
    Outlook outlook{Proof::none};
    outlook.on_let_in();
    outlook.begin_attempt();
    outlook.on_refused(Refusal::lasting);
    for (const CloseReason reason :
         {CloseReason::rejected, CloseReason::not_admitted, CloseReason::protocol_error})
        EXPECT_FALSE(outlook.may_change(ended(reason)));
}

} // namespace
} // namespace netio::outlook_test
