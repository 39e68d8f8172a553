// SPDX-License-Identifier: Apache-2.0
// tests/model/credits_model_test.cpp explores two endpoints; here is one of them, step by step.

#include "stream/credits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stream {
namespace {

TEST(Credits, R13KeepsOneInReserve) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4, .return_threshold_count = 2}};

    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(credits.can_send());
        credits.on_data_sent();
    }

    EXPECT_FALSE(credits.can_send());
    EXPECT_EQ(credits.available(), 1U);
}

TEST(Credits, R13TheReserveReturnsCreditsAtTheThreshold) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4, .return_threshold_count = 2}};
    for (int i = 0; i < 3; ++i)
        credits.on_data_sent();

    ASSERT_EQ(credits.on_received(0), ProtocolError::none);
    EXPECT_FALSE(credits.must_return());
    ASSERT_EQ(credits.on_received(0), ProtocolError::none);
    EXPECT_TRUE(credits.must_return());

    EXPECT_EQ(credits.on_control_sent(), 2U);
    EXPECT_EQ(credits.owed(), 0U);
    EXPECT_EQ(credits.available(), 0U);
    EXPECT_FALSE(credits.must_return());
}

TEST(Credits, R13ControlMessagesReturnWhatIsOwed) {
    Credits credits{{.receive_count = 8, .peer_receive_count = 8}};
    ASSERT_EQ(credits.on_received(0), ProtocolError::none);

    EXPECT_EQ(credits.on_control_sent(), 1U);
    EXPECT_EQ(credits.on_control_sent(), 0U);
    EXPECT_EQ(credits.available(), 6U);
    ASSERT_EQ(credits.on_received(2), ProtocolError::none);
    EXPECT_EQ(credits.available(), 8U);
}

TEST(Credits, R14RefusesMoreCreditsThanWereUsed) {
    Credits credits{{.receive_count = 4, .peer_receive_count = 4}};
    credits.on_data_sent();
    EXPECT_EQ(credits.on_received(2), ProtocolError::credit_overrun);
    EXPECT_EQ(credits.available(), 3U);
}

TEST(Credits, R14RefusesAMessageThatHadNoCredit) {
    Credits credits{{.receive_count = 3, .peer_receive_count = 4}};
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(credits.on_received(0), ProtocolError::none);
    EXPECT_EQ(credits.on_received(0), ProtocolError::unpermitted_message);
}

TEST(Credits, RefusesOptionsThatWouldStopOrNeverEnd) {
    const auto make = [](std::uint32_t own, std::uint32_t peer, std::uint32_t threshold) {
        return Credits{{.receive_count = own,
                        .peer_receive_count = peer,
                        .return_threshold_count = threshold}};
    };
    EXPECT_THROW(make(2, 4, 0), std::invalid_argument);
    EXPECT_THROW(make(4, 2, 0), std::invalid_argument);
    EXPECT_THROW(make(65'536, 4, 0), std::invalid_argument);
    EXPECT_THROW(make(4, 4, 1), std::invalid_argument);
    EXPECT_THROW(make(4, 4, 4), std::invalid_argument);
    EXPECT_THAT([&] { make(0, 4, 0); },
                testing::ThrowsMessage<std::invalid_argument>(
                    testing::HasSubstr("receive_count is 0, but receive counts go from 3")));
    EXPECT_NO_THROW(make(3, 65'535, 2));
}

TEST(CreditsDeathTest, AbortsWhenTheCallerDoesNotAsk) {
    Credits credits{{.receive_count = 3, .peer_receive_count = 3}};
    credits.on_data_sent();
    credits.on_data_sent();
    EXPECT_DEATH(credits.on_data_sent(), "without a credit");
    EXPECT_DEATH(static_cast<void>(credits.on_control_sent()), "without a credit");
}

} // namespace
} // namespace stream
