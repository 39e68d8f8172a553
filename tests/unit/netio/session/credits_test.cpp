// SPDX-License-Identifier: Apache-2.0
// tests/model/credits_model_test.cpp explores two endpoints; here is one endpoint, step by step.

#include "netio/session/send_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace netio::credits_test {
namespace {

void receive(Credits& credits, std::uint32_t returned = 0) {
    ASSERT_EQ(credits.on_received(returned), CreditError::none);
    credits.on_reposted();
}

TEST(Credits, R13KeepsOneInReserve) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4, .return_threshold_count = 2}};

    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(credits.can_write());
        credits.on_write_sent();
    }

    EXPECT_FALSE(credits.can_write());
    EXPECT_FALSE(credits.can_send_frame());
    EXPECT_EQ(credits.available(), 1U);
}

TEST(Credits, R13AFrameThatReturnsCreditsMayTakeTheReserve) {
    Credits credits{{.receive_count = 8, .peer_receive_count = 3}};
    credits.on_write_sent();
    credits.on_write_sent();
    receive(credits);

    EXPECT_FALSE(credits.can_write());
    ASSERT_TRUE(credits.can_send_frame());
    EXPECT_EQ(credits.on_frame_sent(), 1U);
    EXPECT_FALSE(credits.can_send_own_frame());
    EXPECT_EQ(credits.available(), 0U);
}

// The user of the peer may have paused.
TEST(Credits, R13OnATwoWayConnectionOnlyAnOwnFrameMayTakeTheReserve) {
    Credits credits{{.receive_count = 8, .peer_receive_count = 3, .two_way = true}};
    credits.on_write_sent();
    credits.on_write_sent();
    receive(credits);

    EXPECT_FALSE(credits.can_send_frame());
    ASSERT_TRUE(credits.can_send_own_frame());
    EXPECT_EQ(credits.on_frame_sent(), 1U);
    EXPECT_FALSE(credits.can_send_own_frame());
    EXPECT_EQ(credits.available(), 0U);
}

TEST(Credits, R13TheReserveReturnsCreditsAtTheThreshold) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4, .return_threshold_count = 2}};
    for (int i = 0; i < 3; ++i)
        credits.on_write_sent();

    receive(credits);
    EXPECT_FALSE(credits.must_return());
    receive(credits);
    EXPECT_TRUE(credits.must_return());

    EXPECT_EQ(credits.on_frame_sent(), 2U);
    EXPECT_EQ(credits.owed(), 0U);
    EXPECT_EQ(credits.available(), 0U);
    EXPECT_FALSE(credits.must_return());
}

TEST(Credits, R13FramesReturnWhatIsOwed) {
    Credits credits{{.receive_count = 8, .peer_receive_count = 8}};
    receive(credits);

    EXPECT_EQ(credits.on_frame_sent(), 1U);
    EXPECT_EQ(credits.on_frame_sent(), 0U);
    EXPECT_EQ(credits.available(), 6U);
    receive(credits, 2);
    EXPECT_EQ(credits.available(), 8U);
}

TEST(Credits, R13AReceiveThatIsNotPostedAgainIsNotOwed) {
    Credits credits{{.receive_count = 8, .peer_receive_count = 8}};
    ASSERT_EQ(credits.on_received(0), CreditError::none);
    EXPECT_EQ(credits.on_frame_sent(), 0U);
    credits.on_reposted();
    EXPECT_EQ(credits.on_frame_sent(), 1U);
}

TEST(Credits, R14RefusesMoreCreditsThanWereUsed) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4}};
    credits.on_write_sent();
    EXPECT_EQ(credits.on_received(2), CreditError::overrun);
    EXPECT_EQ(credits.available(), 3U);
}

TEST(Credits, R14RefusesAMessageThatHadNoCredit) {
    Credits credits{{.receive_count = 3, .peer_receive_count = 4}};
    for (int i = 0; i < 3; ++i)
        receive(credits);
    EXPECT_EQ(credits.on_received(0), CreditError::unpermitted);
}

TEST(Credits, RefusesOptionsThatWouldStopOrNeverEnd) {
    const auto make = [](std::uint32_t own, std::uint32_t peer, std::uint32_t threshold) {
        return Credits{{.receive_count = own,
                        .peer_receive_count = peer,
                        .return_threshold_count = threshold}};
    };
    EXPECT_THROW(make(2, 4, 0), std::invalid_argument);
    EXPECT_THROW(make(4, 2, 0), std::invalid_argument);
    EXPECT_THROW(make(32'768, 4, 0), std::invalid_argument);
    EXPECT_THROW(make(4, 4, 1), std::invalid_argument);
    EXPECT_THROW(make(4, 4, 4), std::invalid_argument);
    EXPECT_THAT([&] { make(0, 4, 0); },
                testing::ThrowsMessage<std::invalid_argument>(
                    testing::HasSubstr("receive_count is 0, but receive counts go from 3")));
    EXPECT_NO_THROW(make(3, 32'767, 2));
}

TEST(Credits, AWindowThatGrowsGrantsWhatWasAdded) {
    Credits here{{.receive_count = 4, .peer_receive_count = 4}};
    Credits there{{.receive_count = 4, .peer_receive_count = 4}};
    for (int i = 0; i < 3; ++i)
        there.on_write_sent();
    EXPECT_FALSE(there.can_write());

    here.grow(4);
    EXPECT_EQ(here.granted(), 8U);
    EXPECT_EQ(there.on_window(8), CreditError::none);
    EXPECT_EQ(there.available(), 5U);
    EXPECT_TRUE(there.can_write());
    EXPECT_EQ(there.on_received(4), CreditError::overrun) << "three are used";
    EXPECT_EQ(there.on_received(3), CreditError::none);
    EXPECT_EQ(there.available(), 8U);
}

TEST(Credits, KnowWhenThePeerCanOnlyReturnThem) {
    Credits here{{.receive_count = 4, .peer_receive_count = 4}};
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(here.on_received(0), CreditError::none);
    EXPECT_TRUE(here.can_peer_send());
    EXPECT_EQ(here.on_received(0), CreditError::none);
    EXPECT_FALSE(here.can_peer_send());
    for (int i = 0; i < 3; ++i)
        here.on_reposted();
    EXPECT_FALSE(here.can_peer_send()) << "they are owed, but not returned";
    EXPECT_EQ(here.on_frame_sent(), 3U);
    EXPECT_TRUE(here.can_peer_send());
}

// Number of received frames after which a frame with their credits is due.
std::uint32_t owed_when_due(Credits credits) {
    std::uint32_t owed = 0;
    for (; !credits.must_return(); ++owed)
        receive(credits);
    return owed;
}

TEST(Credits, CreditsOfAGrownWindowReturnInTwoToEightParts) {
    const auto due = [](std::uint32_t peer, std::uint32_t more) {
        Credits credits{{.receive_count = 8, .peer_receive_count = peer}};
        credits.grow(more);
        return owed_when_due(credits);
    };
    EXPECT_EQ(owed_when_due(Credits{{.receive_count = 8, .peer_receive_count = 8}}), 4U) << "half";
    EXPECT_EQ(due(8, 8), 4U) << "not more often than before";
    EXPECT_EQ(due(8, 244), 36U) << "in seven parts";
    EXPECT_EQ(due(9, 248), 32U);
    EXPECT_EQ(due(64, 248), 32U) << "in eight parts at most";
    EXPECT_EQ(due(3, 248), 128U) << "in two parts at least";
}

TEST(Credits, ThePartsFollowBothWindows) {
    Credits credits{{.receive_count = 8, .peer_receive_count = 3}};
    credits.grow(248);
    EXPECT_EQ(owed_when_due(credits), 128U);
    ASSERT_EQ(credits.on_window(5), CreditError::none);
    EXPECT_EQ(owed_when_due(credits), 64U);
    for (int i = 0; i < 248; ++i) {
        ASSERT_EQ(credits.on_received(0), CreditError::none);
        credits.on_retired();
    }
    EXPECT_EQ(owed_when_due(credits), 4U);
}

TEST(Credits, AWindowShrinksByWhatWasUsedAndIsNotReturned) {
    Credits here{{.receive_count = 8, .peer_receive_count = 4}};
    Credits there{{.receive_count = 4, .peer_receive_count = 8}};
    for (int i = 0; i < 4; ++i) {
        there.on_write_sent();
        ASSERT_EQ(here.on_received(0), CreditError::none);
        here.on_retired();
    }
    EXPECT_EQ(here.receive_count(), 4U);
    EXPECT_EQ(here.owed(), 0U);
    EXPECT_EQ(there.on_window(4), CreditError::none);
    EXPECT_EQ(there.available(), 4U);
    EXPECT_EQ(there.on_received(1), CreditError::overrun);
}

TEST(Credits, AfterAShrinkAFrameStillNeedsACredit) {
    Credits here{{.receive_count = 4, .peer_receive_count = 4}};
    ASSERT_EQ(here.on_received(0), CreditError::none);
    here.on_retired();
    for (int i = 0; i < 3; ++i)
        receive(here);
    EXPECT_EQ(here.on_received(0), CreditError::unpermitted);
}

TEST(Credits, RefusesAWindowThatCannotBe) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 8}};
    credits.on_write_sent();
    EXPECT_EQ(credits.on_window(6), CreditError::overrun) << "seven were never used";
    EXPECT_EQ(credits.on_window(7), CreditError::none);
    EXPECT_EQ(credits.on_window(least_receive_count - 1), CreditError::overrun);
    EXPECT_EQ(credits.on_window(most_receive_count + 1), CreditError::overrun);
    EXPECT_EQ(credits.on_window(most_receive_count), CreditError::none);
    EXPECT_EQ(credits.available(), most_receive_count);
}

TEST(Credits, AreOfAsManyReceivesAsTheWireCarriesAndOfNoMore) {
    EXPECT_NO_THROW(
        (Credits{{.receive_count = most_receive_count, .peer_receive_count = most_receive_count}}));
    EXPECT_THROW((Credits{{.receive_count = 4, .peer_receive_count = most_receive_count + 1}}),
                 std::invalid_argument);
}

TEST(Credits, AWindowMayShrinkToTheLeastThereIs) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4}};
    credits.on_write_sent();
    EXPECT_EQ(credits.on_window(least_receive_count), CreditError::none);
    EXPECT_EQ(credits.peer_receive_count(), least_receive_count);
    EXPECT_EQ(credits.available(), 3U);
}

TEST(CreditsDeathTest, AbortsWhenTheCallerDoesNotAsk) {
    Credits credits{{.receive_count = 3, .peer_receive_count = 3}};
    credits.on_write_sent();
    credits.on_write_sent();
    EXPECT_DEATH(credits.on_write_sent(), "without a credit");
    EXPECT_DEATH(static_cast<void>(credits.on_frame_sent()), "without a credit");
}

} // namespace
} // namespace netio::credits_test
