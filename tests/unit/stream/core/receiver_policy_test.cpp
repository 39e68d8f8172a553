// SPDX-License-Identifier: Apache-2.0
// The receiver's policies R7, P5 to P7 and P10, and its modes. The protocol allows every choice;
// these tests define the one that is made.

#include "stream/core/receiver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace netio::stream::receiver_policy_test {
namespace {

// Every policy off; a test switches on what it needs.
ReceiverOptions plain(std::uint64_t ring_bytes = 1'000) {
    ReceiverOptions options = published_receiver(ring_bytes);
    options.advert_number = AdvertNumber::exact;
    return options;
}

// One control message as text: adverts as receive;sequence;bytes;phase, then the acknowledgement.
std::string tell(Receiver& receiver) {
    ControlMessage message;
    std::string text;
    collect_control(
        receiver,
        [&](const LocalAdvert& advert) {
            text += (text.empty() ? "" : " ") +
                    std::to_string(static_cast<std::uint64_t>(advert.id)) + ";" +
                    std::to_string(advert.terms.sequence.value()) + ";" +
                    std::to_string(advert.terms.bytes) + ";" +
                    std::to_string(advert.terms.phase.value());
            return Advert{.terms = advert.terms};
        },
        message);
    if (message.acknowledged_bytes) {
        text += (text.empty() ? "ACK=" : " ACK=") + std::to_string(*message.acknowledged_bytes);
    }
    receiver.check_invariants();
    return text;
}

void post(Receiver& receiver, std::uint64_t id, std::uint64_t bytes, bool wait_all = false) {
    receiver.post(ReceiveId{id}, bytes, wait_all);
}

void arrive(Receiver& receiver, TransferKind kind, std::uint32_t bytes) {
    ASSERT_EQ(receiver.on_transfer(kind, bytes), ProtocolError::none);
}

void copy_all(Receiver& receiver) {
    while (receiver.next_copy())
        receiver.on_copied();
}

// --- R7 ------------------------------------------------------------------------------------------

TEST(Readvertising, R7TheFirstIndirectTransferOfAPhaseVoidsAllAdverts) {
    ReceiverOptions options = plain();
    options.readvertise = true;
    options.batch_limit_count = 33;
    Receiver receiver{options};
    for (std::uint64_t id = 1; id <= 3; ++id)
        post(receiver, id, 100);
    EXPECT_EQ(tell(receiver), "1;0;100;0 2;0;100;0 3;0;100;0");

    arrive(receiver, TransferKind::indirect, 10);

    EXPECT_EQ(receiver.open_advert_count(), 0U);
    EXPECT_EQ(receiver.counters().adverts_revoked, 3U);
    copy_all(receiver);
    EXPECT_EQ(receiver.next_ack(), 10U);
    EXPECT_EQ(tell(receiver), "2;10;100;2 3;10;100;2") << "again, without waiting";
}

TEST(Readvertising, R7TheRestOfAWaitAllReceiveIsAdvertisedAgain) {
    ReceiverOptions options = plain();
    options.readvertise = true;
    Receiver receiver{options};
    post(receiver, 1, 100, true);
    EXPECT_EQ(tell(receiver), "1;0;100;0");
    arrive(receiver, TransferKind::direct, 20);
    arrive(receiver, TransferKind::indirect, 30);
    copy_all(receiver);

    const auto advert = receiver.next_advert();

    ASSERT_TRUE(advert);
    EXPECT_EQ(advert->offset, 50U); // R8
    EXPECT_EQ(advert->terms, (AdvertTerms{Sequence{50}, Phase{2}, 50, true}));
}

TEST(Readvertising, R7WithEstimatesTheCountRestartsAtTheDeliveredBytes) {
    ReceiverOptions options = plain();
    options.advert_number = AdvertNumber::estimated;
    options.readvertise = true;
    options.batch_limit_count = 33;
    Receiver receiver{options};
    for (std::uint64_t id = 1; id <= 3; ++id)
        post(receiver, id, 100);
    EXPECT_EQ(tell(receiver), "1;0;100;0 2;1;100;0 3;2;100;0");
    arrive(receiver, TransferKind::indirect, 10);
    copy_all(receiver);
    EXPECT_EQ(receiver.next_ack(), 10U);
    EXPECT_EQ(tell(receiver), "2;10;100;2 3;11;100;2");
}

TEST(Readvertising, R7PublishedReceiverWaitsUntilTheRingHasSatisfiedThem) {
    Receiver receiver{plain()};
    for (std::uint64_t id = 1; id <= 2; ++id) {
        post(receiver, id, 100);
        tell(receiver);
    }
    arrive(receiver, TransferKind::indirect, 10);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "ACK=10");
    EXPECT_EQ(tell(receiver), "");
    EXPECT_EQ(receiver.open_advert_count(), 1U);
}

// --- P5 ------------------------------------------------------------------------------------------

Receiver after_an_indirect_transfer(const ReceiverOptions& options) {
    Receiver receiver{options};
    arrive(receiver, TransferKind::indirect, 100);
    for (std::uint64_t id = 1; id <= 3; ++id)
        post(receiver, id, 100);
    copy_all(receiver);
    return receiver;
}

TEST(ControlMessages, P5AdvertsAndTheAcknowledgementAreInOneMessage) {
    ReceiverOptions options = plain();
    options.adverts_first = true;
    options.batch_limit_count = 33;
    Receiver receiver = after_an_indirect_transfer(options);
    EXPECT_EQ(tell(receiver), "2;100;100;2 3;100;100;2 ACK=100");
    EXPECT_EQ(tell(receiver), "");
}

TEST(ControlMessages, P5PublishedSendsEachByItselfTheAcknowledgementFirst) {
    Receiver receiver = after_an_indirect_transfer(plain());
    EXPECT_EQ(tell(receiver), "ACK=100");
    EXPECT_EQ(tell(receiver), "2;100;100;2");
    EXPECT_EQ(tell(receiver), "3;100;100;2");
    EXPECT_EQ(tell(receiver), "");
}

TEST(ControlMessages, P5AFullMessageLeavesTheRestForTheNext) {
    ReceiverOptions options = plain();
    options.adverts_first = true;
    options.batch_limit_count = 2;
    Receiver receiver = after_an_indirect_transfer(options);
    EXPECT_EQ(tell(receiver), "2;100;100;2 3;100;100;2");
    EXPECT_EQ(tell(receiver), "ACK=100");
}

TEST(ControlMessages, P5AMessageHasNoMoreAdvertsThanTheWireCarries) {
    ReceiverOptions options = plain();
    options.adverts_first = true;
    options.batch_limit_count = 1'000;
    Receiver receiver{options};
    for (std::uint64_t id = 1; id <= 40; ++id)
        post(receiver, id, 1);
    const std::string first = tell(receiver);
    const std::string second = tell(receiver);
    EXPECT_EQ(std::count(first.begin(), first.end(), ' '), 31);
    EXPECT_EQ(std::count(second.begin(), second.end(), ' '), 7);
}

// --- P6 ------------------------------------------------------------------------------------------

ReceiverOptions late_acknowledgement() {
    ReceiverOptions options = improved_receiver(6'400);
    options.ack_threshold_bytes = 1'600;
    options.advert_threshold_bytes = 0;
    return options;
}

TEST(LateAcknowledgement, P6WaitsForTheThresholdWhileTheRingHoldsBytes) {
    Receiver receiver{late_acknowledgement()};
    arrive(receiver, TransferKind::indirect, 5'000);
    post(receiver, 1, 1'599);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "");
    EXPECT_EQ(receiver.unacknowledged_bytes(), 1'599U);
    post(receiver, 2, 1);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "ACK=1600");
}

TEST(LateAcknowledgement, P6AcknowledgesAtOnceWhenTheRingIsEmpty) {
    Receiver receiver{late_acknowledgement()};
    EXPECT_EQ(prompt_ack_bytes(6'400), 100U);
    arrive(receiver, TransferKind::indirect, 100);
    post(receiver, 1, 100);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "ACK=100");
}

TEST(LateAcknowledgement, P6KeepsLessThanThatForTheNextAdverts) {
    Receiver receiver{late_acknowledgement()};
    arrive(receiver, TransferKind::indirect, 99);
    post(receiver, 1, 99);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "");
    post(receiver, 2, 500);
    EXPECT_EQ(tell(receiver), "2;99;500;2 ACK=99");
}

TEST(LateAcknowledgement, P6PublishedAcknowledgesEveryCopy) {
    Receiver receiver{plain()};
    arrive(receiver, TransferKind::indirect, 10);
    post(receiver, 1, 1);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "ACK=1");
}

// --- P7 ------------------------------------------------------------------------------------------

TEST(AdvertThreshold, P7ShortReceivesAndLaterOnesAreNotAdvertised) {
    ReceiverOptions options = plain();
    options.advert_threshold_bytes = 50;
    options.batch_limit_count = 33;
    Receiver receiver{options};
    post(receiver, 1, 50);
    post(receiver, 2, 49);
    post(receiver, 3, 50);
    EXPECT_EQ(tell(receiver), "1;0;50;0");
    arrive(receiver, TransferKind::direct, 50);
    arrive(receiver, TransferKind::indirect, 49);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "ACK=49") << "the peer's sends are small, receive 3 can wait";
    arrive(receiver, TransferKind::indirect, 50);
    copy_all(receiver);
    post(receiver, 4, 50);
    EXPECT_EQ(tell(receiver), "4;149;50;2 ACK=99");
}

TEST(AdvertThreshold, P7CountsWhatIsStillOpenOfAReceive) {
    ReceiverOptions options = plain();
    options.advert_threshold_bytes = 50;
    Receiver receiver{options};
    arrive(receiver, TransferKind::indirect, 60);
    post(receiver, 1, 100, true);
    copy_all(receiver);
    EXPECT_EQ(tell(receiver), "ACK=60");
    EXPECT_EQ(tell(receiver), "") << "40 bytes are left";
}

// --- P10 -----------------------------------------------------------------------------------------

ReceiverOptions answering() {
    ReceiverOptions options = plain();
    options.adverts_first = true;
    options.batch_limit_count = 33;
    options.report_no_advert = true;
    return options;
}

TEST(NoAdvert, P10IsReportedAfterTheLastAdvertIsUsed) {
    Receiver receiver{answering()};
    post(receiver, 1, 100);
    post(receiver, 2, 100);
    EXPECT_EQ(tell(receiver), "1;0;100;0 2;0;100;0");
    arrive(receiver, TransferKind::direct, 100);
    EXPECT_EQ(tell(receiver), "");
    arrive(receiver, TransferKind::direct, 100);
    EXPECT_EQ(tell(receiver), "ACK=0") << "the old total again";
    EXPECT_EQ(tell(receiver), "") << "once";
}

TEST(NoAdvert, P10TheNextAdvertIsAnswerEnough) {
    Receiver receiver{answering()};
    post(receiver, 1, 100);
    tell(receiver);
    arrive(receiver, TransferKind::direct, 100);
    post(receiver, 2, 100);
    EXPECT_EQ(tell(receiver), "2;100;100;0");
    EXPECT_EQ(tell(receiver), "");
}

TEST(NoAdvert, P10AWaitAllReceiveThatIsNotFullIsStillAdvertised) {
    Receiver receiver{answering()};
    post(receiver, 1, 100, true);
    tell(receiver);
    arrive(receiver, TransferKind::direct, 60);
    EXPECT_EQ(tell(receiver), "");
    arrive(receiver, TransferKind::direct, 40);
    EXPECT_EQ(tell(receiver), "ACK=0");
}

TEST(NoAdvert, P10NoReportInAnIndirectPhase) {
    Receiver receiver{answering()};
    post(receiver, 1, 100);
    tell(receiver);
    arrive(receiver, TransferKind::direct, 100);
    arrive(receiver, TransferKind::indirect, 10);
    EXPECT_EQ(tell(receiver), "");
}

TEST(NoAdvert, P10PublishedReceiverReportsNothing) {
    Receiver receiver{plain()};
    post(receiver, 1, 100);
    tell(receiver);
    arrive(receiver, TransferKind::direct, 100);
    EXPECT_EQ(tell(receiver), "");
}

// --- Modes ---------------------------------------------------------------------------------------

TEST(ReceiverModes, IndirectOnlyAdvertisesNothing) {
    ReceiverOptions options = plain();
    options.mode = TransferMode::indirect_only;
    Receiver receiver{options};
    post(receiver, 1, 100);
    EXPECT_EQ(tell(receiver), "");
    arrive(receiver, TransferKind::indirect, 100);
    copy_all(receiver);
    post(receiver, 2, 100);
    EXPECT_EQ(tell(receiver), "ACK=100");
    EXPECT_EQ(tell(receiver), "");
}

TEST(ReceiverModes, DirectOnlyWorksWithoutARing) {
    ReceiverOptions options = plain(0);
    options.mode = TransferMode::direct_only;
    Receiver receiver{options};
    post(receiver, 1, 100);
    EXPECT_EQ(tell(receiver), "1;0;100;0");
    arrive(receiver, TransferKind::direct, 40);
    const auto completion = receiver.next_completion();
    ASSERT_TRUE(completion);
    EXPECT_EQ(*completion, (ReceiveCompletion{ReceiveId{1}, 40, false}));
}

} // namespace
} // namespace netio::stream::receiver_policy_test
