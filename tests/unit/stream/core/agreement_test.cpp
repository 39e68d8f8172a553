// SPDX-License-Identifier: Apache-2.0
#include "stream/core/agreement.hpp"

#include <gmock/gmock.h>

#include <string>

namespace netio::stream {
namespace {

using testing::HasSubstr;

TEST(Agreement, AHelloSaysWhatTheOptionsDoAndNeed) {
    const Hello ours = hello_of(improved_sender(0), improved_receiver(100, 200));
    EXPECT_EQ(ours, (Hello{.advert_limit_count = 256,
                           .advertises = true,
                           .needs_adverts = false,
                           .reports_no_advert = true,
                           .ring_may_grow = true}));
    SenderOptions direct = published_sender(0);
    direct.mode = TransferMode::direct_only;
    ReceiverOptions silent = published_receiver(100);
    silent.mode = TransferMode::indirect_only;
    const Hello theirs = hello_of(direct, silent);
    EXPECT_FALSE(theirs.advertises || theirs.reports_no_advert || theirs.ring_may_grow);
    EXPECT_TRUE(theirs.needs_adverts);
}

TEST(Agreement, ModesThatDoNotFitAreNamed) {
    SenderOptions direct = improved_sender(0);
    direct.mode = TransferMode::direct_only;
    ReceiverOptions silent = improved_receiver(100);
    silent.mode = TransferMode::indirect_only;
    const Hello usual = hello_of(improved_sender(0), improved_receiver(100));
    EXPECT_EQ(misfit(direct, silent, usual), "");
    EXPECT_THAT(
        std::string{misfit(improved_sender(0), silent, hello_of(direct, improved_receiver(1)))},
        HasSubstr("is direct-only"));
    EXPECT_THAT(
        std::string{misfit(direct, improved_receiver(1), hello_of(improved_sender(0), silent))},
        HasSubstr("advertises nothing"));
}

TEST(Agreement, NoMoreAdvertsAreSentThanThePeerTakes) {
    const ReceiverOptions options = improved_receiver(100);
    EXPECT_EQ(agreed(options, {.advert_limit_count = 3}).advert_limit_count, 3U);
    EXPECT_EQ(agreed(options, {.advert_limit_count = 1'000}).advert_limit_count, 256U);
}

TEST(Agreement, AShortReceiveIsAdvertisedToAPeerThatSendsDirectlyOnly) {
    const ReceiverOptions options = improved_receiver(100);
    const Hello direct{.advert_limit_count = 1, .needs_adverts = true};
    EXPECT_GT(agreed(options, {.advert_limit_count = 1}).advert_threshold_bytes, 0U);
    EXPECT_EQ(agreed(options, direct).advert_threshold_bytes, 0U);
}

TEST(Agreement, ASenderIsPatientOnlyWithAPeerThatReports) {
    const Hello reports{.reports_no_advert = true};
    const SenderOptions options = improved_sender(0);
    EXPECT_LT(agreed(options, reports, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
    EXPECT_EQ(agreed(options, Hello{}, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
}

TEST(Agreement, ASenderFollowsThePeersRingAndTheProvider) {
    const SenderOptions options = improved_sender(0);
    const Hello grows{.ring_may_grow = true};
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

} // namespace
} // namespace netio::stream
