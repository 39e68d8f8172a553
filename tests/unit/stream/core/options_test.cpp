// SPDX-License-Identifier: Apache-2.0
#include "stream/core/options.hpp"

#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace netio::stream::options_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& attempt) {
    try {
        attempt();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(StreamOptions, BothPoliciesAreValidForAnyRing) {
    for (const std::uint64_t ring_bytes : {1U, 2U, 3U, 200U, 1U << 20}) {
        EXPECT_NO_THROW(validate(improved_sender(ring_bytes)));
        EXPECT_NO_THROW(validate(improved_receiver(ring_bytes)));
        EXPECT_NO_THROW(validate(published_sender(ring_bytes)));
        EXPECT_NO_THROW(validate(published_receiver(ring_bytes)));
    }
}

TEST(StreamOptions, PublishedPolicyHasNoneOfOurImprovements) {
    const SenderOptions sender = published_sender(200);
    EXPECT_EQ(sender.backlog_limit_bytes, unlimited_bytes);
    EXPECT_EQ(sender.direct_threshold_bytes, 0U);
    EXPECT_FALSE(sender.avoid_slivers);
    EXPECT_EQ(sender.coalesce_limit_bytes, 0U);
    EXPECT_FALSE(sender.cork);
    EXPECT_EQ(sender.patience_threshold_bytes, unlimited_bytes);
    EXPECT_FALSE(sender.drain);
    EXPECT_EQ(sender.ring_transfer_limit_bytes, unlimited_bytes);
    EXPECT_FALSE(sender.report_ring_waits);
    const ReceiverOptions receiver = published_receiver(200);
    EXPECT_EQ(receiver.advert_number, AdvertNumber::estimated);
    EXPECT_FALSE(receiver.readvertise);
    EXPECT_FALSE(receiver.adverts_first);
    EXPECT_EQ(receiver.batch_limit_count, 1U);
    EXPECT_EQ(receiver.ack_threshold_bytes, 0U);
    EXPECT_EQ(receiver.advert_threshold_bytes, 0U);
    EXPECT_FALSE(receiver.report_no_advert);
    EXPECT_FALSE(ring_may_grow(receiver));
}

TEST(StreamOptions, ARingGrowsOnlyIfItsLimitIsLargerThanItself) {
    EXPECT_FALSE(ring_may_grow(improved_receiver(100)));
    EXPECT_FALSE(ring_may_grow(improved_receiver(100, 100)));
    EXPECT_TRUE(ring_may_grow(improved_receiver(100, 101)));
    EXPECT_FALSE(ring_may_grow(improved_receiver(0, 101))) << "no ring";
}

TEST(StreamOptions, RefusesWhatCannotWorkAndNamesIt) {
    const auto sender = [](auto change) {
        return [change] {
            SenderOptions options = improved_sender(100);
            change(options);
            Sender{options};
        };
    };
    const auto receiver = [](auto change) {
        return [change] {
            ReceiverOptions options = improved_receiver(100);
            change(options);
            Receiver{options};
        };
    };
    EXPECT_THAT(refusal(sender([](auto& o) { o.ring_bytes = 0; })),
                AllOf(HasSubstr("ring_bytes is 0"), HasSubstr("direct-only")));
    EXPECT_THAT(refusal(sender([](auto& o) { o.longest_transfer_bytes = 0; })),
                HasSubstr("longest_transfer_bytes is 0"));
    EXPECT_THAT(refusal(sender([](auto& o) { o.longest_transfer_bytes = 1U << 29; })),
                HasSubstr("longest_transfer_bytes is 536870912"));
    EXPECT_THAT(refusal(sender([](auto& o) { o.patience_threshold_bytes = 0; })),
                HasSubstr("patience_threshold_bytes is 0"));
    EXPECT_THAT(refusal(sender([](auto& o) { o.ring_transfer_limit_bytes = 0; })),
                HasSubstr("ring_transfer_limit_bytes is 0"));
    EXPECT_THAT(refusal(sender([](auto& o) { o.advert_limit_count = 0; })),
                HasSubstr("advert_limit_count is 0"));
    EXPECT_THAT(refusal(receiver([](auto& o) { o.ring_bytes = 0; })), HasSubstr("ring_bytes is 0"));
    EXPECT_THAT(refusal(receiver([](auto& o) { o.advert_limit_count = 0; })),
                HasSubstr("advert_limit_count is 0"));
    EXPECT_THAT(refusal(receiver([](auto& o) { o.batch_limit_count = 0; })),
                HasSubstr("batch_limit_count is 0"));
    EXPECT_THAT(refusal(receiver([](auto& o) { o.ack_threshold_bytes = 51; })),
                AllOf(HasSubstr("ack_threshold_bytes is 51"), HasSubstr("half of ring_bytes")));
    EXPECT_THAT(
        refusal(receiver([](auto& o) { o.ack_threshold_bytes = 26, o.ring_limit_bytes = 200; })),
        AllOf(HasSubstr("ack_threshold_bytes is 26"), HasSubstr("quarter of ring_bytes")));
    EXPECT_THAT(refusal(receiver([](auto& o) {
                    o.mode = TransferMode::direct_only;
                    o.advert_threshold_bytes = 1;
                })),
                HasSubstr("advert_threshold_bytes is 1"));
}

TEST(StreamOptions, BaselinesNeedOnlyTheirOwnMeans) {
    EXPECT_NO_THROW(Sender({.ring_bytes = 0, .mode = TransferMode::direct_only}));
    EXPECT_NO_THROW(Receiver({.ring_bytes = 0,
                              .mode = TransferMode::direct_only,
                              .ack_threshold_bytes = 0,
                              .advert_threshold_bytes = 0}));
    EXPECT_NO_THROW(
        Sender({.ring_bytes = 10, .mode = TransferMode::indirect_only, .advert_limit_count = 0}));
    EXPECT_NO_THROW(
        Receiver({.ring_bytes = 10, .mode = TransferMode::indirect_only, .advert_limit_count = 0}));
}

TEST(ProtocolErrorText, EveryErrorHasItsOwn) {
    std::vector<std::string> texts;
    for (auto i = 0; i <= static_cast<int>(ProtocolError::end_mismatch); ++i) {
        texts.emplace_back(to_string(static_cast<ProtocolError>(i)));
        EXPECT_NE(texts.back(), "unknown error") << i;
    }
    std::sort(texts.begin(), texts.end());
    EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
}

} // namespace
} // namespace netio::stream::options_test
