// SPDX-License-Identifier: Apache-2.0
// The receiver, event by event: direct phase, indirect phase, the ring, the end, and what no peer
// may do. The numbers of the rules are those of docs/stream-protocol.md.

#include "stream/core/receiver.hpp"

#include <gtest/gtest.h>

#include <string>

namespace netio::stream::receiver_test {
namespace {

constexpr std::uint64_t ring_bytes = 1'000;

ReceiverOptions exact_numbers() {
    ReceiverOptions options = published_receiver(ring_bytes);
    options.advert_number = AdvertNumber::exact;
    return options;
}

class ReceiverTest : public testing::Test {
  protected:
    explicit ReceiverTest(const ReceiverOptions& options = exact_numbers()) : receiver{options} {}
    ~ReceiverTest() override { receiver.check_invariants(); }

    void post(std::uint64_t bytes, bool wait_all = false) {
        receiver.post(ReceiveId{next_receive++}, bytes, wait_all);
    }
    ProtocolError direct(std::uint32_t bytes) {
        return receiver.on_transfer(TransferKind::direct, bytes);
    }
    ProtocolError indirect(std::uint32_t bytes) {
        return receiver.on_transfer(TransferKind::indirect, bytes);
    }
    // All adverts that may be sent now: receive;sequence;bytes;phase, +offset, w for wait-all.
    std::string adverts() {
        std::string all;
        while (const auto advert = receiver.next_advert()) {
            all += (all.empty() ? "" : " ") + number(advert->id) + ";" +
                   std::to_string(advert->terms.sequence.value()) + ";" +
                   std::to_string(advert->terms.bytes) + ";" +
                   std::to_string(advert->terms.phase.value()) +
                   (advert->offset > 0 ? "+" + std::to_string(advert->offset) : "") +
                   (advert->terms.wait_all ? "w" : "");
        }
        return all;
    }
    // Copies as much as possible: receive+offset<-ring offset*bytes.
    std::string copies() {
        std::string all;
        while (const auto copy = receiver.next_copy()) {
            all += (all.empty() ? "" : " ") + number(copy->id) + "+" +
                   std::to_string(copy->receive_offset) + "<-" + std::to_string(copy->ring_offset) +
                   "*" + std::to_string(copy->bytes);
            receiver.on_copied();
        }
        return all;
    }
    // All completed receives: receive=bytes, ! after the end of the stream.
    std::string completions() {
        std::string all;
        while (const auto completion = receiver.next_completion()) {
            all += (all.empty() ? "" : " ") + number(completion->id) + "=" +
                   std::to_string(completion->bytes) + (completion->end_of_stream ? "!" : "");
        }
        return all;
    }
    template <class Id>
    static std::string number(Id id) {
        return std::to_string(static_cast<std::uint64_t>(id));
    }

    Receiver receiver;
    std::uint64_t next_receive = 1;
};

// --- Direct phase --------------------------------------------------------------------------------

TEST_F(ReceiverTest, AdvertisesNothingWithoutAReceive) {
    EXPECT_EQ(adverts(), "");
    post(100);
    EXPECT_EQ(adverts(), "1;0;100;0");
    EXPECT_EQ(adverts(), "") << "once";
    EXPECT_EQ(receiver.open_advert_count(), 1U);
}

TEST_F(ReceiverTest, R5AnAdvertHasTheNumberOfDeliveredBytes) {
    post(100);
    post(50, true);
    EXPECT_EQ(adverts(), "1;0;100;0 2;0;50;0w");
    ASSERT_EQ(direct(30), ProtocolError::none);
    post(10);
    EXPECT_EQ(adverts(), "3;30;10;0");
}

TEST_F(ReceiverTest, R9OneTransferCompletesAPlainReceiveHoweverShort) {
    post(100);
    post(100);
    adverts();
    ASSERT_EQ(direct(1), ProtocolError::none);
    EXPECT_EQ(completions(), "1=1");
    ASSERT_EQ(direct(100), ProtocolError::none);
    EXPECT_EQ(completions(), "2=100");
    EXPECT_EQ(receiver.position(), Sequence{101});
    EXPECT_EQ(receiver.open_advert_count(), 0U);
}

TEST_F(ReceiverTest, R9AWaitAllReceiveCompletesWhenItIsFull) {
    post(100, true);
    EXPECT_EQ(adverts(), "1;0;100;0w");
    ASSERT_EQ(direct(60), ProtocolError::none);
    EXPECT_EQ(completions(), "");
    EXPECT_EQ(adverts(), "") << "its advert stays open, and determines where the rest goes";
    ASSERT_EQ(direct(40), ProtocolError::none);
    EXPECT_EQ(completions(), "1=100");
}

TEST_F(ReceiverTest, R14RefusesADirectTransferForWhichNoReceiveIsOpen) {
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::direct, 1),
              ProtocolError::direct_unexpected);
    post(100); // not advertised yet
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::direct, 1),
              ProtocolError::direct_unexpected);
    adverts();
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::direct, 101),
              ProtocolError::direct_too_long);
    EXPECT_EQ(direct(100), ProtocolError::none);
}

TEST_F(ReceiverTest, R11RefusesAnEmptyTransfer) {
    post(100);
    adverts();
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::direct, 0),
              ProtocolError::transfer_malformed);
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::indirect, 0),
              ProtocolError::transfer_malformed);
}

TEST_F(ReceiverTest, R14AnErrorIsFinal) {
    post(100);
    ASSERT_EQ(direct(1), ProtocolError::direct_unexpected);
    EXPECT_EQ(adverts(), "");
    EXPECT_EQ(indirect(1), ProtocolError::direct_unexpected);
    EXPECT_EQ(receiver.on_fin(0), ProtocolError::direct_unexpected);
    EXPECT_EQ(copies(), "");
    EXPECT_EQ(receiver.next_ack(), std::nullopt);
    EXPECT_EQ(completions(), "");
}

TEST_F(ReceiverTest, R14WhatWasCompleteBeforeAnErrorIsStillReported) {
    post(100);
    adverts();
    ASSERT_EQ(direct(100), ProtocolError::none);
    ASSERT_EQ(direct(1), ProtocolError::direct_unexpected);
    EXPECT_EQ(completions(), "1=100");
}

TEST_F(ReceiverTest, R14ACopyThatEndsAfterAnErrorDeliversNothing) {
    ASSERT_EQ(indirect(10), ProtocolError::none);
    post(10);
    ASSERT_TRUE(receiver.next_copy());
    ASSERT_EQ(direct(1), ProtocolError::direct_unexpected);
    receiver.on_copied();
    EXPECT_EQ(completions(), "") << "the ring may have been damaged in the meantime";
}

TEST_F(ReceiverTest, R14AdvertisesNoMoreThanAgreed) {
    for (unsigned i = 0; i < 300; ++i)
        post(10);
    adverts();
    EXPECT_EQ(receiver.open_advert_count(), 256U);
    ASSERT_EQ(direct(10), ProtocolError::none);
    EXPECT_EQ(adverts(), "257;10;10;0") << "one is used up, the next one may be sent";
}

// --- Indirect phase ------------------------------------------------------------------------------

TEST_F(ReceiverTest, R6PhasesAreOddAfterIndirectAndEvenAfterAnAdvert) {
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_EQ(receiver.phase(), Phase{1});
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_EQ(receiver.phase(), Phase{1});
    post(20);
    post(30);
    EXPECT_EQ(copies(), "1+0<-0*20");
    EXPECT_EQ(adverts(), "2;20;30;2");
    EXPECT_EQ(receiver.phase(), Phase{2});
    EXPECT_EQ(receiver.counters().phase_switches, 2U);
}

TEST_F(ReceiverTest, R3AdvertisesNothingWhileTheRingHoldsBytes) {
    ASSERT_EQ(indirect(30), ProtocolError::none);
    post(20);
    post(100);
    post(100);
    const auto copy = receiver.next_copy();
    ASSERT_TRUE(copy);
    EXPECT_EQ(adverts(), "");
    receiver.on_copied();
    EXPECT_EQ(receiver.ring_used_bytes(), 10U);
    EXPECT_EQ(adverts(), "");
    EXPECT_EQ(copies(), "2+0<-20*10");
    EXPECT_EQ(adverts(), "3;30;100;2");
}

TEST_F(ReceiverTest, R3HoldsAdvertsOffUntilThoseOfTheFinishedPhaseAreSatisfied) {
    post(100);
    post(100);
    EXPECT_EQ(adverts(), "1;0;100;0 2;0;100;0");
    ASSERT_EQ(indirect(10), ProtocolError::none); // Figure 4
    EXPECT_EQ(copies(), "1+0<-0*10");
    post(100);
    EXPECT_EQ(adverts(), "") << "receive 2 is still advertised as of phase 0";
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_EQ(copies(), "2+0<-10*10");
    EXPECT_EQ(adverts(), "3;20;100;2");
}

TEST_F(ReceiverTest, R3AdvertisesInTheOrderOfTheReceives) {
    ASSERT_EQ(indirect(5), ProtocolError::none);
    post(100, true);
    post(50);
    EXPECT_EQ(copies(), "1+0<-0*5");
    EXPECT_EQ(adverts(), "1;5;95;2+5w 2;5;50;2");
}

TEST_F(ReceiverTest, R14RefusesADirectTransferInAnIndirectPhase) {
    post(100);
    adverts();
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::direct, 1),
              ProtocolError::direct_unexpected);
    copies();
    post(100);
    EXPECT_EQ(direct(1), ProtocolError::direct_unexpected)
        << "the ring is empty, but nothing is advertised in this phase";
}

// --- R5: the published estimate ------------------------------------------------------------------

class ReceiverWithEstimate : public ReceiverTest {
  protected:
    ReceiverWithEstimate() : ReceiverTest{published_receiver(ring_bytes)} {}
};

TEST_F(ReceiverWithEstimate, R5CountsAPlainAdvertAsOneByteAndAWaitAllOneInFull) {
    post(100);
    post(50, true);
    post(100);
    EXPECT_EQ(adverts(), "1;0;100;0 2;1;50;0w 3;51;100;0");
    EXPECT_EQ(receiver.estimate(), Sequence{52});
}

TEST_F(ReceiverWithEstimate, R5IsCorrectedByWhatArrivesIntoAnAdvertisedReceive) {
    post(100);
    post(100);
    adverts();
    ASSERT_EQ(direct(30), ProtocolError::none); // n - 1 more than the advert counted
    EXPECT_EQ(receiver.estimate(), Sequence{31});
    ASSERT_EQ(indirect(20), ProtocolError::none);
    copies();
    EXPECT_EQ(receiver.estimate(), Sequence{50}) << "for bytes through the ring as well";
    EXPECT_EQ(receiver.estimate(), receiver.position());
}

TEST_F(ReceiverWithEstimate, R5CountsWhatArrivesIntoAReceiveThatWasNeverAdvertised) {
    ASSERT_EQ(indirect(30), ProtocolError::none);
    post(30);
    copies();
    post(10);
    EXPECT_EQ(adverts(), "2;30;10;2");
}

TEST_F(ReceiverWithEstimate, R5IsNotMovedByTheLaterBytesOfAWaitAllReceive) {
    post(100, true);
    adverts();
    EXPECT_EQ(receiver.estimate(), Sequence{100});
    ASSERT_EQ(direct(60), ProtocolError::none);
    ASSERT_EQ(indirect(40), ProtocolError::none);
    copies();
    EXPECT_EQ(receiver.estimate(), Sequence{100});
    EXPECT_EQ(receiver.position(), Sequence{100});
}

// --- The ring ------------------------------------------------------------------------------------

TEST_F(ReceiverTest, R4ACopyStopsAtTheRingsEndAndAtTheReceivesEnd) {
    ASSERT_EQ(indirect(900), ProtocolError::none);
    post(900);
    copies();
    ASSERT_EQ(indirect(100), ProtocolError::none);
    ASSERT_EQ(indirect(200), ProtocolError::none);
    post(250);
    post(250);
    EXPECT_EQ(copies(), "2+0<-900*100 2+100<-0*150 3+0<-150*50");
    EXPECT_EQ(completions(), "1=900 2=250 3=50");
}

TEST_F(ReceiverTest, R9APlainReceiveTakesAllThatTheRingHasForIt) {
    ASSERT_EQ(indirect(10), ProtocolError::none);
    ASSERT_EQ(indirect(20), ProtocolError::none);
    post(100);
    ASSERT_TRUE(receiver.next_copy(10));
    receiver.on_copied();
    EXPECT_EQ(completions(), "") << "a copy in small steps does not end it";
    EXPECT_EQ(copies(), "1+10<-10*20");
    EXPECT_EQ(completions(), "1=30");
}

TEST_F(ReceiverTest, R9AWaitAllReceiveIsFilledFromTheRingOverManyTransfers) {
    post(100, true);
    ASSERT_EQ(indirect(60), ProtocolError::none);
    EXPECT_EQ(copies(), "1+0<-0*60");
    EXPECT_EQ(completions(), "");
    ASSERT_EQ(indirect(60), ProtocolError::none);
    EXPECT_EQ(copies(), "1+60<-60*40");
    EXPECT_EQ(completions(), "1=100");
    EXPECT_EQ(receiver.ring_used_bytes(), 20U);
}

TEST_F(ReceiverTest, R4OneCopyAtATime) {
    ASSERT_EQ(indirect(10), ProtocolError::none);
    post(100, true);
    ASSERT_TRUE(receiver.next_copy());
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_FALSE(receiver.next_copy());
    receiver.on_copied();
    EXPECT_TRUE(receiver.next_copy());
}

TEST_F(ReceiverTest, R4RefusesWhatDoesNotFitTheRing) {
    ASSERT_EQ(indirect(900), ProtocolError::none);
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::indirect, 101),
              ProtocolError::ring_overrun);
    post(900);
    copies();
    EXPECT_EQ(Receiver{receiver}.on_transfer(TransferKind::indirect, 101),
              ProtocolError::ring_overrun)
        << "there is room, but not before the end of the ring";
    EXPECT_EQ(indirect(100), ProtocolError::none);
}

TEST_F(ReceiverTest, R4RefusesAnIndirectTransferWithoutARing) {
    ReceiverOptions options = published_receiver(0);
    options.mode = TransferMode::direct_only;
    Receiver without{options};
    EXPECT_EQ(without.on_transfer(TransferKind::indirect, 1), ProtocolError::ring_overrun);
}

TEST_F(ReceiverTest, R10AcknowledgesOnlyWhatWasCopied) {
    ASSERT_EQ(indirect(30), ProtocolError::none);
    EXPECT_EQ(receiver.next_ack(), std::nullopt);
    post(20);
    ASSERT_TRUE(receiver.next_copy());
    EXPECT_EQ(receiver.next_ack(), std::nullopt) << "the copy is not finished";
    receiver.on_copied();
    EXPECT_EQ(receiver.next_ack(), 20U);
    EXPECT_EQ(receiver.next_ack(), std::nullopt);
}

TEST_F(ReceiverTest, R10AnAcknowledgementIsTheTotal) {
    for (const std::uint64_t total : {30U, 60U, 90U}) {
        ASSERT_EQ(indirect(30), ProtocolError::none);
        post(30);
        copies();
        EXPECT_EQ(receiver.next_ack(), total);
    }
    EXPECT_EQ(receiver.unacknowledged_bytes(), 0U);
    EXPECT_EQ(receiver.counters().acks, 3U);
}

// --- Empty receives, and the end -----------------------------------------------------------------

TEST_F(ReceiverTest, R11AnEmptyReceiveCompletesInItsTurnAndIsNeverAdvertised) {
    post(0);
    EXPECT_EQ(completions(), "1=0");
    post(100);
    post(0);
    post(50, true);
    EXPECT_EQ(adverts(), "2;0;100;0 4;0;50;0w");
    EXPECT_EQ(completions(), "");
    ASSERT_EQ(direct(7), ProtocolError::none);
    EXPECT_EQ(completions(), "2=7 3=0");
}

TEST_F(ReceiverTest, R12TheEndCompletesEveryReceiveWithWhatItHas) {
    post(100, true);
    post(100);
    post(0);
    adverts();
    ASSERT_EQ(direct(40), ProtocolError::none);
    ASSERT_EQ(receiver.on_fin(40), ProtocolError::none);
    EXPECT_TRUE(receiver.is_finished());
    EXPECT_EQ(completions(), "1=40! 2=0! 3=0!");
    post(100);
    EXPECT_EQ(completions(), "4=0!");
    EXPECT_EQ(adverts(), "") << "nothing more will arrive";
}

TEST_F(ReceiverTest, R12AfterTheEndTheRingIsEmptiedFirst) {
    ASSERT_EQ(indirect(30), ProtocolError::none);
    ASSERT_EQ(receiver.on_fin(30), ProtocolError::none);
    EXPECT_FALSE(receiver.is_finished());
    post(20);
    EXPECT_EQ(copies(), "1+0<-0*20");
    EXPECT_EQ(completions(), "1=20");
    EXPECT_EQ(adverts(), "");
    post(20);
    EXPECT_EQ(copies(), "2+0<-20*10");
    EXPECT_EQ(completions(), "2=10!");
    EXPECT_TRUE(receiver.is_finished());
}

TEST_F(ReceiverTest, R12RefusesAWrongEndAndAnythingAfterTheEnd) {
    ASSERT_EQ(indirect(30), ProtocolError::none);
    EXPECT_EQ(Receiver{receiver}.on_fin(29), ProtocolError::end_mismatch);
    EXPECT_EQ(Receiver{receiver}.on_fin(31), ProtocolError::end_mismatch);
    ASSERT_EQ(receiver.on_fin(30), ProtocolError::none);
    EXPECT_EQ(Receiver{receiver}.on_fin(30), ProtocolError::transfer_after_end);
    EXPECT_EQ(indirect(1), ProtocolError::transfer_after_end);
}

using ReceiverDeathTest = ReceiverTest;

TEST_F(ReceiverDeathTest, AbortsOnTheCallersMistakes) {
    EXPECT_DEATH(receiver.on_copied(), "without a copy");
    EXPECT_DEATH(static_cast<void>(receiver.next_copy(0)), "0 bytes");
}

// --- bytes that are read where they lie -----------------------------------------------------

TEST_F(ReceiverTest, ConsumedBytesAreFreeAndAcknowledgedLikeCopiedOnes) {
    EXPECT_EQ(receiver.peek(), std::nullopt);
    ASSERT_EQ(indirect(700), ProtocolError::none);
    EXPECT_EQ(receiver.peek(), (RingPart{.ring = 0, .offset = 0, .bytes = 700}));
    receiver.consume(0);
    receiver.consume(600);
    EXPECT_EQ(receiver.peek(), (RingPart{.ring = 0, .offset = 600, .bytes = 100}));
    EXPECT_EQ(receiver.position(), Sequence{600});
    EXPECT_EQ(receiver.next_early_ack(), 600U);
    // Up to the end of the ring, then from its beginning.
    ASSERT_EQ(indirect(300), ProtocolError::none);
    ASSERT_EQ(indirect(600), ProtocolError::none);
    EXPECT_EQ(indirect(1), ProtocolError::ring_overrun) << "the ring is full";
}

TEST_F(ReceiverTest, PeekEndsWhereTheRingEnds) {
    ASSERT_EQ(indirect(900), ProtocolError::none);
    receiver.consume(900);
    ASSERT_EQ(indirect(100), ProtocolError::none);
    ASSERT_EQ(indirect(50), ProtocolError::none);
    EXPECT_EQ(receiver.peek(), (RingPart{.ring = 0, .offset = 900, .bytes = 100}));
    receiver.consume(100);
    EXPECT_EQ(receiver.peek(), (RingPart{.ring = 0, .offset = 0, .bytes = 50}));
}

TEST_F(ReceiverTest, AReceiveGetsWhatWasNotConsumed) {
    ASSERT_EQ(indirect(100), ProtocolError::none);
    receiver.consume(30);
    post(1000);
    EXPECT_EQ(receiver.peek(), std::nullopt) << "the bytes belong to the receive";
    EXPECT_EQ(copies(), "1+0<-30*70");
    post(50);
    EXPECT_EQ(adverts(), "2;100;50;2") << "exact numbers: the consumed bytes count";
}

TEST_F(ReceiverTest, TheEndComesAfterTheLastByteIsConsumed) {
    ASSERT_EQ(indirect(10), ProtocolError::none);
    ASSERT_EQ(receiver.on_fin(10), ProtocolError::none);
    receiver.consume(9);
    EXPECT_FALSE(receiver.is_finished());
    receiver.consume(1);
    EXPECT_TRUE(receiver.is_finished());
}

TEST_F(ReceiverDeathTest, MoreThanPeekHasReturnedIsNotConsumed) {
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_DEATH(receiver.consume(11), "more bytes than peek");
    post(5);
    EXPECT_DEATH(receiver.consume(1), "more bytes than peek");
}

} // namespace
} // namespace netio::stream::receiver_test
