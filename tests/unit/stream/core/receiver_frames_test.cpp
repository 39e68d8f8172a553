// SPDX-License-Identifier: Apache-2.0
// Bytes in frames (R16): the place that the receiver gives them, the completion of a receive, and
// what no peer may do.

#include "stream/core/receiver.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace netio::stream::receiver_frames_test {
namespace {

constexpr std::uint64_t ring_bytes = 1'000;

class ReceiverFrames : public testing::Test {
  protected:
    ~ReceiverFrames() override { receiver.check_invariants(); }

    void post(std::uint64_t bytes, bool wait_all = false) {
        receiver.post(ReceiveId{next_receive++}, bytes, wait_all);
        while (receiver.next_advert()) {
        }
    }
    ProtocolError direct(std::uint32_t bytes, bool more = false) {
        return receiver.on_frame({.kind = TransferKind::direct, .more = more}, bytes, place);
    }
    ProtocolError indirect(std::uint32_t bytes, RingNotice notice = {}) {
        return receiver.on_frame({.kind = TransferKind::indirect, .ring = notice}, bytes, place);
    }
    std::vector<std::uint64_t> completions() {
        std::vector<std::uint64_t> all;
        while (const auto completion = receiver.next_completion())
            all.push_back(completion->bytes);
        return all;
    }

    Receiver receiver{published_receiver(ring_bytes)};
    std::uint64_t next_receive = 1;
    Place place;
};

using Lengths = std::vector<std::uint64_t>;

TEST_F(ReceiverFrames, APlainReceiveCompletesWithTheLastFrameOfItsTransfer) {
    post(100);
    post(100);
    ASSERT_EQ(direct(30, true), ProtocolError::none);
    EXPECT_EQ(place, (Place{.id = ReceiveId{1}, .offset = 0}));
    ASSERT_EQ(direct(30, true), ProtocolError::none);
    EXPECT_EQ(place, (Place{.id = ReceiveId{1}, .offset = 30}));
    EXPECT_EQ(completions(), Lengths{});
    ASSERT_EQ(direct(5), ProtocolError::none);
    EXPECT_EQ(place, (Place{.id = ReceiveId{1}, .offset = 60}));
    EXPECT_EQ(completions(), Lengths{65});
    EXPECT_EQ(receiver.counters().direct_transfers, 1U);
    EXPECT_EQ(receiver.counters().direct_bytes, 65U);
    ASSERT_EQ(direct(1), ProtocolError::none);
    EXPECT_EQ(place, (Place{.id = ReceiveId{2}, .offset = 0}));
}

TEST_F(ReceiverFrames, AWaitAllReceiveTakesFramesOfManyTransfers) {
    post(100, true);
    ASSERT_EQ(direct(30, true), ProtocolError::none);
    ASSERT_EQ(direct(20), ProtocolError::none);
    EXPECT_EQ(completions(), Lengths{});
    ASSERT_EQ(direct(50), ProtocolError::none);
    EXPECT_EQ(place, (Place{.id = ReceiveId{1}, .offset = 50}));
    EXPECT_EQ(completions(), Lengths{100});
}

TEST_F(ReceiverFrames, NoFrameGoesBeyondTheReceiveThatItsTransferHasBegun) {
    post(100);
    ASSERT_EQ(direct(60, true), ProtocolError::none);
    EXPECT_EQ(direct(41, true), ProtocolError::direct_too_long);
}

TEST_F(ReceiverFrames, AReceiveThatIsFullIsCompleteWhateverIsSaidToFollow) {
    post(100);
    ASSERT_EQ(direct(100, true), ProtocolError::none);
    EXPECT_EQ(completions(), Lengths{100});
    EXPECT_EQ(direct(1), ProtocolError::direct_unexpected) << "no other receive";
}

TEST_F(ReceiverFrames, WithoutAnAdvertThereIsNoPlaceForADirectOne) {
    EXPECT_EQ(direct(1), ProtocolError::direct_unexpected);
}

TEST_F(ReceiverFrames, IndirectFramesAreContiguousInTheRing) {
    ASSERT_EQ(indirect(600), ProtocolError::none);
    EXPECT_EQ(place, (Place{.ring = 0, .offset = 0}));
    ASSERT_EQ(indirect(400), ProtocolError::none);
    EXPECT_EQ(place, (Place{.ring = 0, .offset = 600}));
    post(700, true);
    while (receiver.next_copy())
        receiver.on_copied();
    ASSERT_EQ(indirect(10), ProtocolError::none);
    EXPECT_EQ(place, (Place{.ring = 0, .offset = 0})) << "at the start again";
    EXPECT_EQ(indirect(701), ProtocolError::ring_overrun);
}

TEST_F(ReceiverFrames, NoneGoesAcrossTheEndOfTheRing) {
    ASSERT_EQ(indirect(900), ProtocolError::none);
    post(900);
    while (receiver.next_copy())
        receiver.on_copied();
    EXPECT_EQ(indirect(101), ProtocolError::ring_overrun);
}

TEST_F(ReceiverFrames, TheFirstIntoAnotherRingLiesAtItsStart) {
    receiver = Receiver{improved_receiver(ring_bytes, 2 * ring_bytes)};
    ASSERT_EQ(indirect(10, {.waited = true}), ProtocolError::none);
    ASSERT_TRUE(receiver.wanted_ring());
    receiver.announce_ring();
    ASSERT_EQ(indirect(2'000, {.first = true}), ProtocolError::none);
    EXPECT_EQ(place, (Place{.ring = 1, .offset = 0}));
}

TEST_F(ReceiverFrames, AStreamThatEndsWithinATransferLeavesTheReceiveShort) {
    post(100);
    ASSERT_EQ(direct(60, true), ProtocolError::none);
    ASSERT_EQ(receiver.on_fin(60), ProtocolError::none);
    EXPECT_EQ(completions(), Lengths{60});
    EXPECT_EQ(direct(1), ProtocolError::transfer_after_end);
}

} // namespace
} // namespace netio::stream::receiver_frames_test
