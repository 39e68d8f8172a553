// SPDX-License-Identifier: Apache-2.0
// The sender, event by event, in each of its states: direct phase with and without adverts, and
// indirect phase. The numbers of the rules are those of docs/stream-protocol.md.

#include "stream/core/sender.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace netio::stream::sender_test {
namespace {

constexpr std::uint64_t ring_bytes = 1'000;

// One transfer as text: kind, sequence, bytes, place.
std::string text(const Transfer& transfer) {
    return (transfer.kind == TransferKind::direct ? "D " : "I ") +
           std::to_string(transfer.sequence.value()) + "+" + std::to_string(transfer.bytes) +
           " to " +
           std::to_string(transfer.kind == TransferKind::direct ? transfer.address
                                                                : transfer.ring_offset);
}

class SenderTest : public testing::Test {
  protected:
    explicit SenderTest(const SenderOptions& options = published_sender(ring_bytes))
        : sender{options} {}
    ~SenderTest() override { sender.check_invariants(); }

    void submit(std::uint64_t bytes) { sender.submit(SendId{next_send++}, bytes); }
    ProtocolError advert(std::uint64_t sequence, std::uint32_t phase, std::uint64_t bytes,
                         bool wait_all = false, std::uint64_t address = 5'000) {
        return sender.on_advert(
            {.terms = {Sequence{sequence}, Phase{phase}, bytes, wait_all}, .address = address});
    }
    // Posts everything that may be posted now.
    std::string pump(std::size_t piece_limit = 1) {
        std::string all;
        std::array<Piece, 8> pieces{};
        while (const auto transfer = sender.next_transfer(std::span{pieces}.first(piece_limit))) {
            all += (all.empty() ? "" : ", ") + text(*transfer);
            posted.push_back(*transfer);
            last_pieces.assign(pieces.begin(),
                               pieces.begin() + static_cast<std::ptrdiff_t>(transfer->piece_count));
        }
        return all;
    }
    void finish_writes() {
        for (; finished < posted.size(); ++finished)
            sender.on_transfer_done(posted[finished].number);
    }
    // All completed sends.
    std::vector<std::uint64_t> completions() {
        std::vector<std::uint64_t> ids;
        while (const auto id = sender.next_completion())
            ids.push_back(static_cast<std::uint64_t>(*id));
        return ids;
    }

    Sender sender;
    std::uint64_t next_send = 1;
    std::vector<Transfer> posted;
    std::size_t finished = 0;
    std::vector<Piece> last_pieces;
};

using Ids = std::vector<std::uint64_t>;

// --- Direct phase --------------------------------------------------------------------------------

TEST_F(SenderTest, PostsNothingWithoutASend) {
    EXPECT_EQ(pump(), "");
    ASSERT_EQ(advert(0, 0, 100), ProtocolError::none);
    EXPECT_EQ(pump(), "");
    EXPECT_EQ(sender.advert_count(), 1U);
}

TEST_F(SenderTest, R6WithoutAnAdvertAnIndirectTransferMakesThePhaseOdd) {
    submit(100);
    EXPECT_EQ(pump(), "I 0+100 to 0");
    EXPECT_EQ(sender.phase(), Phase{1});
    EXPECT_EQ(sender.ring_free_bytes(), 900U);
}

TEST_F(SenderTest, R1InADirectPhaseEveryAdvertIsUsableWhateverItsNumber) {
    ASSERT_EQ(advert(0, 0, 60), ProtocolError::none);
    ASSERT_EQ(advert(1, 0, 70, false, 6'000), ProtocolError::none);
    submit(100);
    EXPECT_EQ(pump(), "D 0+60 to 5000, D 60+40 to 6000");
    EXPECT_EQ(sender.phase(), Phase{0});
}

TEST_F(SenderTest, R8OneTransferUsesUpAPlainAdvertHoweverShort) {
    ASSERT_EQ(advert(0, 0, 100), ProtocolError::none);
    submit(1);
    submit(10);
    EXPECT_EQ(pump(), "D 0+1 to 5000, I 1+10 to 0");
}

TEST_F(SenderTest, R8AWaitAllAdvertIsUsedUntilItIsFull) {
    ASSERT_EQ(advert(0, 0, 100, true), ProtocolError::none);
    submit(30);
    submit(60);
    submit(20);
    EXPECT_EQ(pump(), "D 0+30 to 5000, D 30+60 to 5030, D 90+10 to 5090, I 100+10 to 0");
    EXPECT_EQ(sender.advert_count(), 0U);
}

TEST_F(SenderTest, ASendMayBeSplitOverAdvertsAndRingBeforeTheNextBegins) {
    ASSERT_EQ(advert(0, 0, 30), ProtocolError::none);
    submit(100);
    submit(5);
    EXPECT_EQ(pump(), "D 0+30 to 5000, I 30+70 to 0, I 100+5 to 70");
}

TEST_F(SenderTest, CountsTransfersAndBytesOfEachKind) {
    ASSERT_EQ(advert(0, 0, 30), ProtocolError::none);
    submit(100);
    submit(5);
    ASSERT_EQ(pump(), "D 0+30 to 5000, I 30+70 to 0, I 100+5 to 70");
    EXPECT_EQ(sender.counters().direct_transfers, 1U);
    EXPECT_EQ(sender.counters().direct_bytes, 30U);
    EXPECT_EQ(sender.counters().indirect_transfers, 2U);
    EXPECT_EQ(sender.counters().indirect_bytes, 75U);
}

TEST_F(SenderTest, R14InADirectPhaseAnAdvertOfAnotherPhaseBreaksTheProtocol) {
    EXPECT_EQ(advert(0, 2, 100), ProtocolError::advert_phase);
    submit(10);
    EXPECT_EQ(pump(), "") << "an error is final";
    EXPECT_EQ(advert(0, 0, 100), ProtocolError::advert_phase);
    EXPECT_EQ(sender.on_ack(0), ProtocolError::advert_phase);
    sender.finish();
    EXPECT_EQ(sender.next_fin(), std::nullopt);
}

// --- Indirect phase ------------------------------------------------------------------------------

class SenderInIndirectPhase : public SenderTest {
  protected:
    SenderInIndirectPhase() {
        submit(100);
        pump();
    }
};

TEST_F(SenderInIndirectPhase, R1AcceptsALaterPhaseAtItsOwnPosition) {
    ASSERT_EQ(advert(100, 2, 50), ProtocolError::none);
    EXPECT_EQ(sender.phase(), Phase{1}) << "the phase changes with the transfer";
    submit(50);
    EXPECT_EQ(pump(), "D 100+50 to 5000");
    EXPECT_EQ(sender.phase(), Phase{2});
}

TEST_F(SenderInIndirectPhase, R2RejectingALaterPhaseJumpsPastIt) {
    ASSERT_EQ(advert(60, 2, 50), ProtocolError::none);
    EXPECT_EQ(sender.phase(), Phase{3});
    EXPECT_EQ(sender.counters().adverts_rejected_by_sequence, 1U);
    // The next advert fits by chance, but belongs to the rejected phase (Figure 7).
    ASSERT_EQ(advert(100, 2, 50), ProtocolError::none);
    EXPECT_EQ(sender.advert_count(), 0U);
    EXPECT_EQ(sender.counters().adverts_rejected_by_phase, 1U);
    ASSERT_EQ(advert(100, 4, 50), ProtocolError::none);
    EXPECT_EQ(sender.advert_count(), 1U);
}

TEST_F(SenderInIndirectPhase, R1RejectsAnAdvertOfThePhaseThatIsOver) {
    ASSERT_EQ(advert(0, 0, 50), ProtocolError::none);
    EXPECT_EQ(sender.phase(), Phase{1});
    EXPECT_EQ(sender.counters().adverts_rejected_by_phase, 1U);
}

TEST_F(SenderInIndirectPhase, R1AUsableAdvertIsStaleOnceBytesWentPastIt) {
    ASSERT_EQ(advert(100, 2, 50), ProtocolError::none);
    ASSERT_EQ(advert(101, 2, 50), ProtocolError::none);
    submit(10);
    submit(10);
    EXPECT_EQ(pump(), "D 100+10 to 5000, D 110+10 to 5000");
    submit(10);
    EXPECT_EQ(pump(), "I 120+10 to 100");
    EXPECT_EQ(sender.phase(), Phase{3});
}

TEST_F(SenderInIndirectPhase, R14RefusesWhatNoPeerMaySay) {
    EXPECT_EQ(Sender{sender}.on_advert({.terms = {Sequence{101}, Phase{2}, 50, false}}),
              ProtocolError::advert_ahead);
    EXPECT_EQ(Sender{sender}.on_advert({.terms = {Sequence{100}, Phase{4}, 50, false}}),
              ProtocolError::advert_phase);
    EXPECT_EQ(Sender{sender}.on_advert({.terms = {Sequence{100}, Phase{2}, 0, false}}),
              ProtocolError::advert_malformed); // R11
    EXPECT_EQ(Sender{sender}.on_advert({.terms = {Sequence{100}, Phase{3}, 50, false}}),
              ProtocolError::advert_malformed);
    EXPECT_EQ(Sender{sender}.on_ack(101), ProtocolError::ack_out_of_range);
    EXPECT_EQ(Sender{sender}.on_ack(100), ProtocolError::none);
}

TEST_F(SenderInIndirectPhase, R14RefusesAnAdvertWhoseNumberIsMoreThanARingTooLow) {
    ASSERT_EQ(sender.on_ack(100), ProtocolError::none);
    submit(ring_bytes);
    pump();
    ASSERT_EQ(sender.on_ack(150), ProtocolError::none);
    EXPECT_EQ(advert(99, 2, 50), ProtocolError::advert_behind);
}

TEST_F(SenderInIndirectPhase, R14RefusesMoreAdvertsThanAgreed) {
    for (unsigned i = 0; i < 256; ++i)
        ASSERT_EQ(advert(100, 2, 50), ProtocolError::none) << i;
    EXPECT_EQ(advert(100, 2, 50), ProtocolError::advert_limit);
}

TEST_F(SenderInIndirectPhase, StaleAdvertsTakeNoRoomWhileNothingIsSent) {
    for (unsigned i = 0; i < 1'000; ++i)
        ASSERT_EQ(advert(0, 0, 50), ProtocolError::none);
    EXPECT_EQ(sender.advert_count(), 0U);
}

// --- The ring ------------------------------------------------------------------------------------

TEST_F(SenderTest, R4AnIndirectTransferStopsAtTheRingsEnd) {
    submit(900);
    pump();
    ASSERT_EQ(sender.on_ack(500), ProtocolError::none);
    submit(300);
    EXPECT_EQ(pump(), "I 900+100 to 900, I 1000+200 to 0");
}

TEST_F(SenderTest, R4WaitsForSpaceAndGoesOnAfterTheAcknowledgement) {
    submit(1'500);
    EXPECT_EQ(pump(), "I 0+1000 to 0");
    EXPECT_EQ(sender.queued_bytes(), 500U);
    EXPECT_EQ(pump(), "");
    EXPECT_EQ(sender.counters().waits_for_ring, 1U) << "one wait, for any number of calls";
    ASSERT_EQ(sender.on_ack(200), ProtocolError::none);
    EXPECT_EQ(pump(), "I 1000+200 to 0");
    EXPECT_EQ(sender.counters().waits_for_ring, 2U);
}

TEST_F(SenderTest, R10AnAcknowledgementIsATotalSoThatARepeatedOneIsHarmless) {
    submit(1'000);
    pump();
    ASSERT_EQ(sender.on_ack(300), ProtocolError::none);
    ASSERT_EQ(sender.on_ack(300), ProtocolError::none);
    EXPECT_EQ(sender.ring_free_bytes(), 300U);
    EXPECT_EQ(sender.on_ack(299), ProtocolError::ack_out_of_range);
}

// --- Completions and the end ---------------------------------------------------------------------

TEST_F(SenderTest, ASendCompletesWhenItsLastWriteIsFinished) {
    ASSERT_EQ(advert(0, 0, 60), ProtocolError::none);
    submit(100);
    submit(10);
    pump(); // 60 direct, 40 and 10 through the ring
    ASSERT_EQ(posted.size(), 3U);

    sender.on_transfer_done(posted[2].number);
    sender.on_transfer_done(posted[0].number);
    EXPECT_EQ(completions(), Ids{}) << "completions keep the order of the sends";
    sender.on_transfer_done(posted[1].number);
    EXPECT_EQ(completions(), (Ids{1, 2}));
    EXPECT_EQ(sender.backlog_bytes(), 0U);
}

TEST_F(SenderTest, R11AnEmptySendCompletesInItsTurnAndTravelsNowhere) {
    submit(0);
    EXPECT_EQ(completions(), Ids{1});
    submit(10);
    submit(0);
    submit(0);
    submit(5);
    EXPECT_EQ(pump(), "I 0+10 to 0, I 10+5 to 10");
    EXPECT_EQ(completions(), Ids{});
    sender.on_transfer_done(posted[0].number);
    EXPECT_EQ(completions(), (Ids{2, 3, 4}));
    sender.on_transfer_done(posted[1].number);
    EXPECT_EQ(completions(), Ids{5});
}

TEST_F(SenderTest, R12TheEndFollowsTheLastByteOnce) {
    submit(1'200);
    sender.finish();
    pump();
    EXPECT_EQ(sender.next_fin(), std::nullopt);
    ASSERT_EQ(sender.on_ack(500), ProtocolError::none);
    pump();
    EXPECT_EQ(sender.next_fin(), 1'200U);
    EXPECT_EQ(sender.next_fin(), std::nullopt);
}

TEST_F(SenderTest, R12AnEmptyStreamEndsAtZero) {
    EXPECT_EQ(sender.next_fin(), std::nullopt);
    sender.finish();
    EXPECT_EQ(sender.next_fin(), 0U);
}

using SenderDeathTest = SenderTest;

TEST_F(SenderDeathTest, AbortsOnTheCallersMistakes) {
    submit(10);
    pump();
    EXPECT_DEATH(sender.on_transfer_done(1), "check failed");
    EXPECT_DEATH(static_cast<void>(sender.next_transfer({})), "at least one piece");
    finish_writes();
    EXPECT_DEATH(sender.on_transfer_done(0), "check failed");
    sender.finish();
    EXPECT_DEATH(submit(1), "after finish");
    EXPECT_DEATH(sender.finish(), "twice");
}

} // namespace
} // namespace netio::stream::sender_test
