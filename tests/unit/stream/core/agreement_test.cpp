// SPDX-License-Identifier: Apache-2.0
#include "stream/core/agreement.hpp"

#include <gmock/gmock.h>

#include <string>

namespace netio::stream {
namespace {

using testing::HasSubstr;

TEST(Agreement, AHelloSaysWhatTheOptionsDoAndNeed) {
    const Hello ours = hello_of(improved_sender(0), improved_receiver(100, 200), true);
    EXPECT_EQ(ours, (Hello{.advert_limit_count = 256,
                           .advertises = true,
                           .needs_adverts = false,
                           .reports_no_advert = true,
                           .ring_may_grow = true,
                           .lends_memory = true}));
    SenderOptions direct = published_sender(0);
    direct.mode = TransferMode::direct_only;
    ReceiverOptions silent = published_receiver(100);
    silent.mode = TransferMode::indirect_only;
    const Hello theirs = hello_of(direct, silent, false);
    EXPECT_FALSE(theirs.advertises || theirs.reports_no_advert || theirs.ring_may_grow ||
                 theirs.lends_memory);
    EXPECT_TRUE(theirs.needs_adverts);
}

TEST(Agreement, ModesThatDoNotFitAreNamed) {
    SenderOptions direct = improved_sender(0);
    direct.mode = TransferMode::direct_only;
    ReceiverOptions silent = improved_receiver(100);
    silent.mode = TransferMode::indirect_only;
    const Hello usual = hello_of(improved_sender(0), improved_receiver(100), true);
    EXPECT_EQ(misfit(direct, silent, usual), "");
    EXPECT_THAT(std::string{misfit(improved_sender(0), silent,
                                   hello_of(direct, improved_receiver(1), true))},
                HasSubstr("is direct-only"));
    EXPECT_THAT(std::string{misfit(direct, improved_receiver(1),
                                   hello_of(improved_sender(0), silent, true))},
                HasSubstr("advertises nothing"));
}

TEST(Agreement, NoMoreAdvertsAreSentThanThePeerTakes) {
    const ReceiverOptions options = improved_receiver(100);
    EXPECT_EQ(agreed(options, {.advert_limit_count = 3}, true).advert_limit_count, 3U);
    EXPECT_EQ(agreed(options, {.advert_limit_count = 1'000}, true).advert_limit_count, 256U);
}

TEST(Agreement, WhoTakesNoAdvertsIsServedThroughTheRingOrNamed) {
    const Hello none{.advert_limit_count = 0, .advertises = true};
    const ReceiverOptions options = improved_receiver(100);
    EXPECT_EQ(misfit(improved_sender(0), options, none), "");
    EXPECT_EQ(agreed(options, none, true).mode, TransferMode::indirect_only);
    EXPECT_NO_THROW(validate(agreed(options, none, true)));
    Hello needy = none;
    needy.needs_adverts = true;
    EXPECT_THAT(std::string{misfit(improved_sender(0), options, needy)}, HasSubstr("no adverts"));
    ReceiverOptions direct = published_receiver(0);
    direct.mode = TransferMode::direct_only;
    EXPECT_THAT(std::string{misfit(improved_sender(0), direct, none)}, HasSubstr("no adverts"));
}

TEST(Agreement, AShortReceiveIsAdvertisedToAPeerThatSendsDirectlyOnly) {
    const ReceiverOptions options = improved_receiver(100);
    const Hello direct{.advert_limit_count = 1, .needs_adverts = true};
    EXPECT_GT(agreed(options, {.advert_limit_count = 1}, true).advert_threshold_bytes, 0U);
    EXPECT_EQ(agreed(options, direct, true).advert_threshold_bytes, 0U);
}

TEST(Agreement, ASenderIsPatientOnlyWithAPeerThatReports) {
    const Hello reports{.reports_no_advert = true, .lends_memory = true};
    const Hello silent{.lends_memory = true};
    const SenderOptions options = improved_sender(0);
    EXPECT_LT(agreed(options, reports, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
    EXPECT_EQ(agreed(options, silent, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
}

TEST(Agreement, InFramesNobodyWaitsForAnAdvert) {
    const SenderOptions options = improved_sender(0);
    ASSERT_TRUE(options.drain);
    const Hello writes{.reports_no_advert = true, .lends_memory = true};
    EXPECT_TRUE(agreed(options, writes, 100, 1'000).drain);
    const Hello frames{.reports_no_advert = true};
    EXPECT_FALSE(agreed(options, frames, 100, 1'000).drain);
    EXPECT_EQ(agreed(options, frames, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
}

TEST(Agreement, ASenderFollowsThePeersRingAndTheProvider) {
    const SenderOptions options = improved_sender(0);
    const Hello grows{.ring_may_grow = true, .lends_memory = true};
    EXPECT_TRUE(agreed(options, grows, 100, 1'000).report_ring_waits);
    EXPECT_FALSE(agreed(options, Hello{}, 100, 1'000).report_ring_waits);
    EXPECT_EQ(agreed(options, grows, 100, 1'000).ring_bytes, 100U);
    EXPECT_EQ(agreed(options, grows, 100, 1'000).longest_transfer_bytes, 1'000U);
    EXPECT_EQ(agreed(options, grows, 0, 1'000).mode, TransferMode::direct_only);
    const Hello silent{.advertises = false};
    EXPECT_EQ(agreed(options, silent, 100, 1'000).mode, TransferMode::indirect_only);
    EXPECT_EQ(agreed(options, silent, 0, 1'000).mode, TransferMode::indirect_only)
        << "for the caller to refuse";
}

TEST(Agreement, WhatGoesThroughTheRingOfAPeerThatLendsNoMemoryFitsAFrame) {
    const SenderOptions options = improved_sender(0);
    const SenderOptions in_frames = agreed(options, Hello{}, 100, 1'000);
    EXPECT_EQ(in_frames.ring_transfer_limit_bytes, 1'000U);
    EXPECT_EQ(in_frames.longest_transfer_bytes, options.longest_transfer_bytes)
        << "a direct one may be several";
    EXPECT_EQ(agreed(options, Hello{}, 100, 1 << 20).ring_transfer_limit_bytes,
              options.ring_transfer_limit_bytes);
}

TEST(Agreement, InFramesShortSendsGatherAndShortReceivesNeedNoAdverts) {
    const SenderOptions in_frames = agreed(improved_sender(0), Hello{}, 100, 1 << 20);
    EXPECT_EQ(in_frames.coalesce_limit_bytes, 64U * 1024);
    EXPECT_EQ(in_frames.direct_threshold_bytes, 64U * 1024);
    EXPECT_EQ(agreed(improved_sender(0), Hello{}, 100, 2'000).coalesce_limit_bytes, 16U * 1024);
    EXPECT_EQ(agreed(improved_receiver(100), Hello{}, false).advert_threshold_bytes, 64U * 1024);
    EXPECT_EQ(
        agreed(improved_receiver(100), Hello{.needs_adverts = true}, false).advert_threshold_bytes,
        0U);
    // Where the study has no such policy, there is none in frames either.
    EXPECT_EQ(agreed(published_sender(0), Hello{}, 100, 1 << 20).coalesce_limit_bytes, 0U);
    EXPECT_EQ(agreed(published_receiver(100), Hello{}, false).advert_threshold_bytes, 0U);
}

} // namespace
} // namespace netio::stream
