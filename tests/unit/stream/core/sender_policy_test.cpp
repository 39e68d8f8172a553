// SPDX-License-Identifier: Apache-2.0
// The sender's policies P1 to P4, P8 and P9, and its modes. The protocol allows every choice; these
// tests define the one that is made.

#include "stream/core/sender.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace netio::stream::sender_policy_test {
namespace {

// Every policy off; a test switches on what it needs.
SenderOptions plain(std::uint64_t ring_bytes = 1'000) {
    return published_sender(ring_bytes);
}

struct Posted {
    std::vector<Transfer> transfers;
    std::string text; // kind and bytes of each
};

Posted pump(Sender& sender, std::size_t piece_limit = 1, std::size_t joined_count = 0) {
    Posted posted;
    std::array<Piece, 8> pieces{};
    const auto room = std::span{pieces}.first(piece_limit);
    while (const auto transfer = sender.next_transfer(room, joined_count)) {
        posted.text += (posted.text.empty() ? "" : " ");
        posted.text +=
            (transfer->kind == TransferKind::direct ? "D" : "I") + std::to_string(transfer->bytes);
        for (std::size_t i = 1; i < transfer->piece_count; ++i)
            posted.text += "+";
        posted.transfers.push_back(*transfer);
    }
    sender.check_invariants();
    return posted;
}

Advert advert(std::uint64_t sequence, std::uint32_t phase, std::uint64_t bytes) {
    return {.terms = {Sequence{sequence}, Phase{phase}, bytes, false}};
}

// --- P1 ------------------------------------------------------------------------------------------

TEST(LateDecision, P1WaitsForAnAdvertWhileTheLinkIsBusy) {
    SenderOptions options = plain();
    options.backlog_limit_bytes = 50;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    sender.submit(SendId{1}, 100);
    sender.submit(SendId{2}, 100);

    EXPECT_EQ(pump(sender).text, "D100");
    EXPECT_EQ(sender.counters().waits_for_advert, 1U);

    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "D100");
}

TEST(LateDecision, P1NeverLeavesTheLinkIdle) {
    SenderOptions options = plain();
    options.backlog_limit_bytes = 50;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    sender.submit(SendId{1}, 100);
    sender.submit(SendId{2}, 100);

    const Posted first = pump(sender);
    EXPECT_EQ(first.text, "D100") << "the second send waits";
    sender.on_transfer_done(first.transfers[0].number);
    EXPECT_EQ(pump(sender).text, "I100");
}

TEST(LateDecision, P1InAnIndirectPhaseThereIsNothingToHopeFor) {
    SenderOptions options = plain();
    options.backlog_limit_bytes = 50;
    Sender sender{options};
    sender.submit(SendId{1}, 100);
    sender.submit(SendId{2}, 100);
    EXPECT_EQ(pump(sender).text, "I100 I100");
}

TEST(LateDecision, P1PublishedSenderDecidesAtOnce) {
    Sender sender{plain()};
    sender.submit(SendId{1}, 100);
    sender.submit(SendId{2}, 100);
    EXPECT_EQ(pump(sender).text, "I100 I100");
}

// A sender with a small backlog after `count` direct transfers of 100 bytes; every write is
// complete.
Sender after_direct_transfers(unsigned count) {
    SenderOptions options = plain();
    options.backlog_limit_bytes = 50;
    options.patience_threshold_bytes = 150;
    Sender sender{options};
    for (unsigned i = 0; i < count; ++i) {
        EXPECT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
        sender.submit(SendId{i}, 100);
    }
    for (const Transfer& transfer : pump(sender).transfers)
        sender.on_transfer_done(transfer.number);
    sender.submit(SendId{100}, 100);
    return sender;
}

TEST(Patience, P1AfterManyDirectBytesWaitsForThePeersAnswer) {
    Sender sender = after_direct_transfers(2);
    EXPECT_EQ(pump(sender).text, "");
    EXPECT_EQ(pump(sender).text, "");
    ASSERT_EQ(sender.on_ack(0), ProtocolError::none); // it has no advert to send (P10)
    EXPECT_EQ(pump(sender).text, "I100");
}

TEST(Patience, P1IsRewardedWithTheNextAdvert) {
    Sender sender = after_direct_transfers(2);
    EXPECT_EQ(pump(sender).text, "");
    ASSERT_EQ(sender.on_advert(advert(200, 0, 100)), ProtocolError::none);
    const Posted direct = pump(sender);
    EXPECT_EQ(direct.text, "D100");
    EXPECT_EQ(sender.phase(), Phase{0});

    sender.on_transfer_done(direct.transfers[0].number);
    sender.submit(SendId{101}, 100);
    EXPECT_EQ(pump(sender).text, "I100") << "only 100 bytes since the last wait";
}

TEST(Patience, P1AFewDirectBytesAreNotWorthAWait) {
    Sender sender = after_direct_transfers(1);
    EXPECT_EQ(pump(sender).text, "I100");
}

TEST(Patience, P1AnAnswerThatIsThereAlreadyCounts) {
    SenderOptions options = plain();
    options.patience_threshold_bytes = 100;
    options.backlog_limit_bytes = 50;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    sender.submit(SendId{1}, 100);
    const Posted direct = pump(sender);
    ASSERT_EQ(sender.on_ack(0), ProtocolError::none);
    sender.submit(SendId{2}, 100);
    EXPECT_EQ(pump(sender).text, "") << "the session is busy";
    sender.on_transfer_done(direct.transfers[0].number);
    EXPECT_EQ(pump(sender).text, "I100");
}

// --- P2 ------------------------------------------------------------------------------------------

TEST(ZeroCopyThreshold, P2ShortSendsPreferTheRing) {
    SenderOptions options = plain();
    options.direct_threshold_bytes = 50;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);

    sender.submit(SendId{1}, 49);
    EXPECT_EQ(pump(sender).text, "I49");
    EXPECT_EQ(sender.advert_count(), 1U) << "removed as stale in the next call";
    sender.submit(SendId{2}, 50);
    EXPECT_EQ(pump(sender).text, "I50");
    EXPECT_EQ(sender.advert_count(), 0U);
}

TEST(ZeroCopyThreshold, P2LongSendsAndShortOnesWithoutARingUseTheAdvert) {
    SenderOptions options = plain(40);
    options.direct_threshold_bytes = 50;
    Sender sender{options};
    sender.submit(SendId{1}, 40);
    EXPECT_EQ(pump(sender).text, "I40");
    ASSERT_EQ(sender.on_advert(advert(40, 2, 100)), ProtocolError::none);

    sender.submit(SendId{2}, 10);
    EXPECT_EQ(pump(sender).text, "D10") << "the ring is full";
    ASSERT_EQ(sender.on_ack(40), ProtocolError::none);
    ASSERT_EQ(sender.on_advert(advert(40, 2, 100)), ProtocolError::none);
    sender.submit(SendId{3}, 50);
    EXPECT_EQ(pump(sender).text, "D50");
}

// --- P3 ------------------------------------------------------------------------------------------

TEST(Slivers, P3WaitsForAnEighthOfTheRing) {
    SenderOptions options = plain(800);
    options.avoid_slivers = true;
    Sender sender{options};
    sender.submit(SendId{1}, 2'000);
    EXPECT_EQ(pump(sender).text, "I800");

    ASSERT_EQ(sender.on_ack(99), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "");
    ASSERT_EQ(sender.on_ack(100), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "I100");
}

TEST(Slivers, P3TheRestOfASendMayBeShort) {
    SenderOptions options = plain(800);
    options.avoid_slivers = true;
    Sender sender{options};
    sender.submit(SendId{1}, 810);
    EXPECT_EQ(pump(sender).text, "I800");
    ASSERT_EQ(sender.on_ack(10), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "I10");
}

// --- P8 and P9 -----------------------------------------------------------------------------------

SenderOptions draining() {
    SenderOptions options = plain(800); // a quarter is 200, and 12 bytes count as none
    options.drain = true;
    return options;
}

// Its peer has proved that it receives.
Sender draining_sender() {
    Sender sender{draining()};
    EXPECT_EQ(sender.on_advert(advert(0, 0, 1)), ProtocolError::none);
    sender.submit(SendId{0}, 1);
    EXPECT_EQ(pump(sender).text, "D1");
    return sender;
}

TEST(Draining, P8FillsTheRingOfAPeerThatHasNotShownThatItReceives) {
    Sender sender{draining()};
    sender.submit(SendId{1}, 1'000);
    EXPECT_EQ(pump(sender).text, "I800");
    EXPECT_EQ(sender.counters().waits_for_drain, 0U);
    EXPECT_EQ(sender.counters().waits_for_ring, 1U);
    ASSERT_EQ(sender.on_ack(100), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "") << "now it waits";
    EXPECT_EQ(sender.counters().waits_for_drain, 1U);
}

TEST(Draining, P8FillsTheRingOfAPeerThatHasSaidThatItHasNoAdvert) {
    Sender sender = draining_sender();
    ASSERT_EQ(sender.on_ack(0), ProtocolError::none);
    sender.submit(SendId{1}, 1'000);
    EXPECT_EQ(pump(sender).text, "I800");
    EXPECT_EQ(sender.counters().waits_for_drain, 0U);
}

TEST(Draining, P8WaitsUntilTheRingIsEmptyAndThenTwiceAsLong) {
    Sender sender = draining_sender();
    for (std::uint64_t i = 1; i <= 7; ++i)
        sender.submit(SendId{i}, 100);
    EXPECT_EQ(pump(sender).text, "I100 I100");
    EXPECT_EQ(sender.counters().waits_for_drain, 1U);
    ASSERT_EQ(sender.on_ack(188), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "") << "12 bytes are still in the ring";
    ASSERT_EQ(sender.on_ack(189), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "I100 I100 I100 I100");
    EXPECT_EQ(sender.counters().waits_for_drain, 2U);
}

// Otherwise a better situation would never be detected.
TEST(Draining, P8AfterAnyFailuresItWaitsAgainAtALimitedInterval) {
    SenderOptions options = plain(16); // a quarter is 4
    options.drain = true;
    options.ring_transfer_limit_bytes = 1;
    Sender sender{options};
    constexpr std::uint64_t all = 150'000;
    sender.submit(SendId{1}, all);
    std::uint64_t sent = 0;
    std::uint64_t begin = 0;
    std::vector<std::uint64_t> lengths;
    while (lengths.size() < 16 && sent < all) {
        sent += pump(sender).transfers.size();
        const bool drains = sender.counters().waits_for_drain > lengths.size();
        if (drains) lengths.push_back(sent - std::exchange(begin, sent));
        ASSERT_EQ(sender.on_ack(drains ? sent : sent - 1), ProtocolError::none);
    }
    EXPECT_EQ(lengths, (std::vector<std::uint64_t>{16, 8, 16, 32, 64, 128, 256, 512, 1024, 2048,
                                                   4096, 8192, 16'384, 16'384, 16'384, 16'384}));
}

TEST(Draining, P8AnAdvertOfTheEmptyRingIsUsable) {
    Sender sender = draining_sender();
    for (std::uint64_t i = 1; i <= 4; ++i)
        sender.submit(SendId{i}, 100);
    EXPECT_EQ(pump(sender).text, "I100 I100");
    ASSERT_EQ(sender.on_advert(advert(201, 2, 200)), ProtocolError::none);
    ASSERT_EQ(sender.on_advert(advert(201, 2, 200)), ProtocolError::none);
    ASSERT_EQ(sender.on_ack(200), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "D100 D100");
}

TEST(Draining, P8AnEqualAmountThroughAdvertsResetsTheInterval) {
    Sender sender = draining_sender();
    const auto go = [&sender](std::uint64_t bytes) {
        sender.submit(SendId{}, bytes);
        return pump(sender).text;
    };
    EXPECT_EQ(go(200), "I200");
    ASSERT_EQ(sender.on_ack(200), ProtocolError::none);
    EXPECT_EQ(go(400), "I400") << "the ring was empty, and there was no advert";
    ASSERT_EQ(sender.on_ack(600), ProtocolError::none);
    ASSERT_EQ(sender.on_advert(advert(601, 2, 500)), ProtocolError::none);
    EXPECT_EQ(go(500), "D500");
    EXPECT_EQ(go(200), "I200");
    EXPECT_EQ(go(1), "") << "after 200 bytes, as at the beginning";
}

TEST(Draining, P8ShortSendsDoNotWaitForAnAdvertThatTheyWouldNotUse) {
    SenderOptions options = draining();
    options.direct_threshold_bytes = 50;
    Sender sender{options};
    sender.submit(SendId{1}, 200);
    EXPECT_EQ(pump(sender).text, "I200");
    ASSERT_EQ(sender.on_ack(100), ProtocolError::none);
    sender.submit(SendId{2}, 49);
    sender.submit(SendId{3}, 50);
    EXPECT_EQ(pump(sender).text, "I49");
}

TEST(RingTransfers, P9LongOnesAreCut) {
    SenderOptions options = plain(1'000);
    options.ring_transfer_limit_bytes = 40;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    sender.submit(SendId{1}, 200);
    EXPECT_EQ(pump(sender).text, "D100 I40 I40 I20") << "direct transfers are not cut";
}

// --- P4 ------------------------------------------------------------------------------------------

SenderOptions coalescing() {
    SenderOptions options = plain();
    options.coalesce_limit_bytes = 100;
    return options;
}

TEST(Coalescing, P4GathersWholeSmallSendsIntoOneTransfer) {
    Sender sender{coalescing()};
    for (std::uint64_t i = 1; i <= 4; ++i)
        sender.submit(SendId{i}, 30);

    std::array<Piece, 8> pieces{};
    const auto transfer = sender.next_transfer(pieces);

    ASSERT_TRUE(transfer);
    EXPECT_EQ(transfer->bytes, 90U) << "the fourth would exceed the limit";
    ASSERT_EQ(transfer->piece_count, 3U);
    EXPECT_EQ(pieces[0], (Piece{SendId{1}, 0, 30}));
    EXPECT_EQ(pieces[2], (Piece{SendId{3}, 0, 30}));
    EXPECT_EQ(pump(sender, 8).text, "I30");
}

TEST(Coalescing, P4TheAdvertAndThePieceLimitBoundATransfer) {
    Sender sender{coalescing()};
    for (std::uint64_t i = 1; i <= 3; ++i)
        sender.submit(SendId{i}, 10);
    EXPECT_EQ(pump(sender, 2).text, "I20+ I10");

    ASSERT_EQ(sender.on_advert(advert(30, 2, 25)), ProtocolError::none);
    for (std::uint64_t i = 4; i <= 6; ++i)
        sender.submit(SendId{i}, 10);
    EXPECT_EQ(pump(sender, 8).text, "D20+ I10");
}

TEST(Coalescing, P4LongSendsLeaveTogetherForTheRingWhereTheyAreFewEnough) {
    const auto sent = [](std::initializer_list<std::uint64_t> sends, std::size_t joined_count) {
        Sender sender{coalescing()};
        for (const std::uint64_t bytes : sends)
            sender.submit(SendId{bytes}, bytes);
        return pump(sender, 8, joined_count).text;
    };
    EXPECT_EQ(sent({200, 200, 200, 200}, 1), "I200 I200 I200 I200");
    EXPECT_EQ(sent({200, 200, 200, 200}, 3), "I600++ I200");
    EXPECT_EQ(sent({200, 200, 10, 10}, 2), "I400+ I20+") << "short sends as usual";
    EXPECT_EQ(sent({30, 30, 30, 200}, 2), "I90++ I200");
    EXPECT_EQ(sent({700, 200, 200}, 3), "I900+ I100") << "only whole sends, into the free space";
}

TEST(Coalescing, P4IntoTheReceiversMemoryLongSendsGoOneByOne) {
    Sender sender{coalescing()};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 500)), ProtocolError::none);
    sender.submit(SendId{1}, 200);
    sender.submit(SendId{2}, 200);
    EXPECT_EQ(pump(sender, 8, 3).text, "D200 I200");
}

TEST(Coalescing, P4SkipsEmptySendsAndTheRestOfALongOneMayLead) {
    Sender sender{coalescing()};
    sender.submit(SendId{1}, 1'020);
    EXPECT_EQ(pump(sender, 8).text, "I1000");
    sender.submit(SendId{2}, 0); // R11
    sender.submit(SendId{3}, 10);
    ASSERT_EQ(sender.on_ack(500), ProtocolError::none);

    std::array<Piece, 8> pieces{};
    const auto transfer = sender.next_transfer(pieces);

    ASSERT_TRUE(transfer);
    ASSERT_EQ(transfer->piece_count, 2U);
    EXPECT_EQ(pieces[0], (Piece{SendId{1}, 1'000, 20}));
    EXPECT_EQ(pieces[1], (Piece{SendId{3}, 0, 10}));
}

TEST(Corking, P4DelaysNeitherTheFirstSendNorALargeQueue) {
    SenderOptions options = coalescing();
    options.cork = true;
    Sender sender{options};
    sender.submit(SendId{1}, 10);
    const Posted first = pump(sender, 8);
    EXPECT_EQ(first.text, "I10");

    sender.submit(SendId{2}, 10);
    EXPECT_EQ(pump(sender, 8).text, "") << "more may come while the first transfer is in flight";
    sender.submit(SendId{3}, 90);
    EXPECT_EQ(pump(sender, 8).text, "I100+") << "100 bytes wait: enough";
    sender.on_transfer_done(first.transfers[0].number);
    EXPECT_EQ(pump(sender, 8).text, "") << "the second transfer is in flight";
}

TEST(Corking, P4WaitsForNoMoreThanTheAdvertHasRoomFor) {
    SenderOptions options = coalescing();
    options.cork = true;
    Sender sender{options};
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(sender.on_advert(advert(0, 0, 20)), ProtocolError::none);
    sender.submit(SendId{1}, 10);
    EXPECT_EQ(pump(sender, 8).text, "D10");
    sender.submit(SendId{2}, 10);
    EXPECT_EQ(pump(sender, 8).text, "") << "another send would fit";
    sender.submit(SendId{3}, 10);
    EXPECT_EQ(pump(sender, 8).text, "D20+");
    sender.submit(SendId{4}, 20);
    EXPECT_EQ(pump(sender, 8).text, "D20") << "although other transfers are in flight";
}

TEST(Corking, P4EndsWithTheTransferUnderWayAndWithTheStream) {
    SenderOptions options = coalescing();
    options.cork = true;
    Sender sender{options};
    sender.submit(SendId{1}, 10);
    const Posted first = pump(sender, 8);
    sender.submit(SendId{2}, 10);
    sender.submit(SendId{3}, 10);
    sender.on_transfer_done(first.transfers[0].number);
    EXPECT_EQ(pump(sender, 8).text, "I20+");

    sender.submit(SendId{4}, 10);
    EXPECT_EQ(pump(sender, 8).text, "");
    sender.finish();
    EXPECT_EQ(pump(sender, 8).text, "I10");
}

// --- Modes ---------------------------------------------------------------------------------------

TEST(Modes, DirectOnlyWaitsForAdvertsAndLeavesTheRingAlone) {
    SenderOptions options = plain(0);
    options.mode = TransferMode::direct_only;
    options.direct_threshold_bytes = 50;
    Sender sender{options};
    sender.submit(SendId{1}, 100);
    EXPECT_EQ(pump(sender).text, "");
    EXPECT_EQ(sender.counters().waits_for_advert, 1U);
    ASSERT_EQ(sender.on_advert(advert(0, 0, 99)), ProtocolError::none);
    ASSERT_EQ(sender.on_advert(advert(1, 0, 99)), ProtocolError::none);
    EXPECT_EQ(pump(sender).text, "D99 D1");
}

TEST(Modes, IndirectOnlyUsesNoAdvertEvenIfThePeerSendsSome) {
    SenderOptions options = plain();
    options.mode = TransferMode::indirect_only;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    sender.submit(SendId{1}, 100);
    EXPECT_EQ(pump(sender).text, "I100");
    ASSERT_EQ(sender.on_advert(advert(100, 2, 100)), ProtocolError::none);
    sender.submit(SendId{2}, 100);
    EXPECT_EQ(pump(sender).text, "I100");
    ASSERT_EQ(sender.on_advert(advert(200, 4, 100)), ProtocolError::none);
}

TEST(Modes, LongTransfersAreCutAtTheLimit) {
    SenderOptions options = plain();
    options.longest_transfer_bytes = 40;
    Sender sender{options};
    ASSERT_EQ(sender.on_advert(advert(0, 0, 100)), ProtocolError::none);
    sender.submit(SendId{1}, 100);
    EXPECT_EQ(pump(sender).text, "D40 I40 I20");
}

} // namespace
} // namespace netio::stream::sender_policy_test
