// SPDX-License-Identifier: Apache-2.0
// A growing ring, event by event, on both sides: when it grows (P11), how both sides change to the
// larger ring (R15), and what no peer may do (R14).

#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

namespace netio::stream::ring_growth_test {
namespace {

// --- The sender ----------------------------------------------------------------------------------

// No other policy.
SenderOptions reporting() {
    SenderOptions options = published_sender(1'000);
    options.report_ring_waits = true;
    return options;
}

class SenderBeforeARing : public testing::Test {
  protected:
    explicit SenderBeforeARing(const SenderOptions& options = reporting()) : sender{options} {}
    ~SenderBeforeARing() override { sender.check_invariants(); }

    void submit(std::uint64_t bytes) { sender.submit(SendId{next_send++}, bytes); }
    // Everything that may be posted now: bytes@offset, w waited, f first.
    std::string pump() {
        std::string all;
        std::array<Piece, 1> pieces{};
        while (const auto transfer = sender.next_transfer(pieces)) {
            EXPECT_EQ(transfer->kind, TransferKind::indirect);
            all += (all.empty() ? "" : " ") + std::to_string(transfer->bytes) + "@" +
                   std::to_string(transfer->ring_offset) + (transfer->notice.waited ? "w" : "") +
                   (transfer->notice.first ? "f" : "");
        }
        return all;
    }
    // Sends 1200 bytes; the last 200 had to wait.
    void wait_for_space() {
        submit(1'200);
        ASSERT_EQ(pump(), "1000@0");
        ASSERT_EQ(sender.on_ack(200), ProtocolError::none);
        ASSERT_EQ(pump(), "200@0w");
    }

    Sender sender;
    std::uint64_t next_send = 0;
};

class SilentSender : public SenderBeforeARing {
  protected:
    SilentSender() : SenderBeforeARing{published_sender(1'000)} {}
};

TEST_F(SenderBeforeARing, P11MarksTheTransfersThatHadToWaitForSpace) {
    submit(600);
    submit(900);
    EXPECT_EQ(pump(), "600@0 400@600");
    ASSERT_EQ(sender.on_ack(300), ProtocolError::none);
    EXPECT_EQ(pump(), "300@0w");
    ASSERT_EQ(sender.on_ack(1'300), ProtocolError::none);
    EXPECT_EQ(pump(), "200@300w");
    submit(100);
    EXPECT_EQ(pump(), "100@500") << "there was space all the time";
}

TEST_F(SilentSender, P11PublishedSenderReportsNoWaitAndAcceptsNoRing) {
    submit(1'200);
    EXPECT_EQ(pump(), "1000@0");
    ASSERT_EQ(sender.on_ack(200), ProtocolError::none);
    EXPECT_EQ(pump(), "200@0");
    EXPECT_EQ(sender.on_ring(2'000), ProtocolError::ring_unexpected);
}

TEST_F(SenderBeforeARing, R15ContinuesAtTheStartOfTheLargerRingWithAMark) {
    wait_for_space();
    submit(2'500);
    EXPECT_EQ(pump(), "");
    ASSERT_EQ(sender.on_ring(2'000), ProtocolError::none);
    EXPECT_EQ(pump(), "2000@0f") << "a wait for the old ring does not count";
    ASSERT_EQ(sender.on_ack(1'700), ProtocolError::none);
    EXPECT_EQ(pump(), "500@0w") << "only the first transfer is marked as first";
    EXPECT_EQ(sender.counters().ring_bytes, 2'000U);
    EXPECT_EQ(sender.counters().ring_growths, 1U);
}

TEST_F(SenderBeforeARing, R15AcknowledgementsOfTheOldRingGiveNoSpaceInTheNewOne) {
    wait_for_space();
    submit(5'000);
    ASSERT_EQ(sender.on_ring(2'000), ProtocolError::none);
    EXPECT_EQ(pump(), "2000@0f");
    ASSERT_EQ(sender.on_ack(1'200), ProtocolError::none); // all of the old ring
    EXPECT_EQ(sender.ring_free_bytes(), 0U);
    EXPECT_EQ(pump(), "");
    ASSERT_EQ(sender.on_ack(1'300), ProtocolError::none);
    EXPECT_EQ(pump(), "100@0w");
}

TEST_F(SenderBeforeARing, R15AnAdvertMayLagByBothRings) {
    wait_for_space();
    submit(2'000);
    ASSERT_EQ(sender.on_ring(2'000), ProtocolError::none);
    EXPECT_EQ(pump(), "2000@0f");
    EXPECT_EQ(sender.position(), Sequence{3'200});
    EXPECT_EQ(sender.on_advert({.terms = {Sequence{200}, Phase{2}, 10, false}}),
              ProtocolError::none);
}

TEST_F(SenderBeforeARing, R14RefusesARingThatItDidNotAskFor) {
    submit(1'000);
    EXPECT_EQ(pump(), "1000@0");
    EXPECT_EQ(sender.on_ring(2'000), ProtocolError::ring_unexpected);
    EXPECT_EQ(sender.error(), ProtocolError::ring_unexpected);
}

TEST_F(SenderBeforeARing, R14RefusesARingThatIsNoLarger) {
    wait_for_space();
    EXPECT_EQ(sender.on_ring(1'000), ProtocolError::ring_unexpected);
}

TEST_F(SenderBeforeARing, R14RefusesASecondRingBeforeItHasWaitedForTheFirst) {
    wait_for_space();
    ASSERT_EQ(sender.on_ring(2'000), ProtocolError::none);
    EXPECT_EQ(sender.on_ring(4'000), ProtocolError::ring_unexpected);
}

// --- The receiver --------------------------------------------------------------------------------

class GrowingReceiver : public testing::Test {
  protected:
    explicit GrowingReceiver(std::uint64_t limit_bytes = 3'000)
        : receiver{ReceiverOptions{.ring_bytes = 1'000,
                                   .ring_limit_bytes = limit_bytes,
                                   .mode = TransferMode::indirect_only}} {}
    ~GrowingReceiver() override { receiver.check_invariants(); }

    ProtocolError arrive(std::uint32_t bytes, RingNotice notice = {}) {
        return receiver.on_transfer(TransferKind::indirect, bytes, notice);
    }
    // Copies `bytes` bytes: ring:offset*bytes.
    std::string copy(std::uint64_t bytes) {
        receiver.post(ReceiveId{next_receive++}, bytes, true);
        std::string all;
        while (const auto run = receiver.next_copy()) {
            all += (all.empty() ? "" : " ") + std::to_string(run->ring) + ":" +
                   std::to_string(run->ring_offset) + "*" + std::to_string(run->bytes);
            receiver.on_copied();
        }
        return all;
    }
    void acknowledge() { static_cast<void>(receiver.next_early_ack()); }
    // A transfer of 100 bytes that had to wait, although everything before it is copied.
    void wait_in_vain() {
        ASSERT_EQ(arrive(900), ProtocolError::none);
        ASSERT_EQ(copy(900), "0:0*900");
        acknowledge();
        ASSERT_EQ(arrive(100, {.waited = true}), ProtocolError::none);
    }
    // Then grows to 2000 bytes, with those 100 bytes still in the old ring, and 300 in the new one.
    void grow() {
        wait_in_vain();
        receiver.announce_ring();
        ASSERT_EQ(arrive(300, {.first = true}), ProtocolError::none);
    }

    Receiver receiver;
    std::uint64_t next_receive = 0;
};

class ReceiverWithAFixedRing : public GrowingReceiver {
  protected:
    ReceiverWithAFixedRing() : GrowingReceiver{1'000} {}
};

TEST_F(GrowingReceiver, P11WantsTwiceTheRingIfThePeerWaitedWhileItWasEmpty) {
    wait_in_vain();
    EXPECT_EQ(receiver.wanted_ring(), 2'000U);
    EXPECT_EQ(receiver.wanted_ring(), 2'000U) << "until there is an answer";
    receiver.announce_ring();
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
}

TEST_F(GrowingReceiver, P11DoesNotGrowWithoutAWait) {
    ASSERT_EQ(arrive(900), ProtocolError::none);
    EXPECT_EQ(copy(900), "0:0*900");
    acknowledge();
    ASSERT_EQ(arrive(100), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
}

TEST_F(GrowingReceiver, P11DoesNotGrowAfterAWaitForItsUser) {
    ASSERT_EQ(arrive(1'000), ProtocolError::none);
    EXPECT_EQ(copy(749), "0:0*749");
    acknowledge();
    ASSERT_EQ(arrive(100, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt) << "more than a quarter was still in the ring";
}

TEST_F(GrowingReceiver, P11DoesNotGrowAfterAWaitForItsAcknowledgement) {
    ASSERT_EQ(arrive(900), ProtocolError::none);
    EXPECT_EQ(copy(500), "0:0*500");
    acknowledge();
    EXPECT_EQ(copy(400), "0:500*400");
    ASSERT_EQ(arrive(100, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
}

TEST_F(GrowingReceiver, P11GrowsToItsLimitAndNotBeyond) {
    grow();
    EXPECT_EQ(copy(400), "0:900*100 1:0*300");
    acknowledge();
    EXPECT_EQ(receiver.next_unused_ring(), 0U);
    ASSERT_EQ(arrive(10, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), 3'000U);
    receiver.announce_ring();
    ASSERT_EQ(arrive(10, {.first = true}), ProtocolError::none);
    EXPECT_EQ(copy(20), "1:300*10 2:0*10");
    acknowledge();
    EXPECT_EQ(receiver.next_unused_ring(), 1U);
    ASSERT_EQ(arrive(10, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
    EXPECT_EQ(receiver.counters().ring_bytes, 3'000U);
    EXPECT_EQ(receiver.counters().ring_growths, 2U);
}

TEST_F(ReceiverWithAFixedRing, P11NeverGrows) {
    wait_in_vain();
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
}

TEST_F(GrowingReceiver, P11AsksNoMoreOnceThereWasNoMemory) {
    wait_in_vain();
    receiver.refuse_ring();
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
    EXPECT_EQ(copy(100), "0:900*100");
    acknowledge();
    ASSERT_EQ(arrive(100, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
    EXPECT_EQ(receiver.counters().ring_refusals, 1U);
    EXPECT_EQ(receiver.counters().ring_bytes, 1'000U);
}

TEST_F(GrowingReceiver, P11WantsNothingForAStreamThatHasEnded) {
    wait_in_vain();
    ASSERT_EQ(receiver.on_fin(1'000), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
}

TEST_F(GrowingReceiver, R15StaysWithTheOldRingUntilTheFirstTransferIntoTheNewOne) {
    wait_in_vain();
    receiver.announce_ring();
    EXPECT_EQ(receiver.counters().ring_bytes, 1'000U);
    ASSERT_EQ(arrive(200), ProtocolError::none) << "sent before the peer knew";
    EXPECT_EQ(copy(300), "0:900*100 0:0*200");
    acknowledge();
    EXPECT_EQ(receiver.next_unused_ring(), std::nullopt);
    ASSERT_EQ(arrive(50, {.first = true}), ProtocolError::none);
    EXPECT_EQ(receiver.next_unused_ring(), 0U) << "it was already empty";
    EXPECT_EQ(copy(50), "1:0*50");
}

TEST_F(GrowingReceiver, R15EmptiesTheOldRingFirstAndReleasesItOnce) {
    grow();
    EXPECT_EQ(copy(60), "0:900*60");
    EXPECT_EQ(receiver.next_unused_ring(), std::nullopt);
    EXPECT_EQ(copy(100), "0:960*40 1:0*60");
    EXPECT_EQ(receiver.next_unused_ring(), 0U);
    EXPECT_EQ(receiver.next_unused_ring(), std::nullopt);
    EXPECT_EQ(receiver.next_early_ack(), 1'060U) << "totals continue";
}

TEST_F(GrowingReceiver, R15TheNewRingHoldsItsSizeInAdditionToTheOldOne) {
    grow();
    ASSERT_EQ(arrive(1'700), ProtocolError::none);
    EXPECT_EQ(receiver.ring_used_bytes(), 2'100U);
    EXPECT_EQ(arrive(1), ProtocolError::ring_overrun);
}

TEST_F(GrowingReceiver, R14RefusesATransferIntoARingThatWasNotAnnounced) {
    wait_in_vain();
    EXPECT_EQ(arrive(50, {.first = true}), ProtocolError::ring_unexpected);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt);
}

TEST_F(GrowingReceiver, R14APeerThatAlwaysClaimsToWaitGetsNoThirdRing) {
    grow();
    acknowledge();
    ASSERT_EQ(arrive(1, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt) << "the old ring is in use";
    EXPECT_EQ(copy(401), "0:900*100 1:0*301");
    acknowledge();
    ASSERT_EQ(arrive(1, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), std::nullopt) << "the old ring is not yet freed";
    EXPECT_EQ(receiver.next_unused_ring(), 0U);
    ASSERT_EQ(arrive(1, {.waited = true}), ProtocolError::none);
    EXPECT_EQ(receiver.wanted_ring(), 3'000U);
}

} // namespace
} // namespace netio::stream::ring_growth_test
