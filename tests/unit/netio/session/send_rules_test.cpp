// SPDX-License-Identifier: Apache-2.0

// A send window at its limits: what it says of waiting, what it counts, and what it copies.

#include "netio/session/send_window.hpp"
#include "tests/unit/netio/session/scripted_connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace netio::test {
namespace {

struct Nobody final : Connection::Handler {
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion&) override {}
    void on_closed(const Closed&) override {}
};

constexpr std::size_t frame_bytes = 100'000;

class SendRules : public testing::Test {
  protected:
    void open(std::size_t slots, std::size_t peer_receives, bool by_immediate = true) {
        window.emplace(slots, budget);
        window->open({.receive_count = 64,
                      .peer_receive_count = peer_receives,
                      .frame_bytes = frame_bytes,
                      .segment_limit = 4,
                      .by_immediate = by_immediate});
    }
    Status send(std::size_t bytes = 0, std::size_t slice_count = 1) {
        std::vector<Slice> slices;
        for (std::size_t i = 0; i < slice_count; ++i)
            slices.push_back(memory.slice(i * bytes, bytes));
        return window->send(pipe, {.kind = first_service_kind, .slices = slices}, std::nullopt);
    }
    Status send_own(FrameKind kind) { return window->send_own(pipe, kind); }
    bool last_has_waited() const { return pipe.sent.back().header().waited; }

    ByteBudget budget{std::size_t{1} << 30U};
    ByteBudget little{1000};
    RegisteredBuffer memory{frame_bytes};
    Nobody nobody;
    ScriptedConnection pipe{nobody};
    std::optional<SendWindow> window;
};

// --- waiting --------------------------------------------------------------------------------

TEST_F(SendRules, TheFirstFrameOfTheServiceBehindAWaitForACreditSaysSo) {
    for (const bool asked : {false, true}) { // before it was made up, or by sending it
        open(64, 4);
        while (window->can_send())
            ASSERT_EQ(send(), Status::ok);
        EXPECT_FALSE(last_has_waited());
        asked ? static_cast<void>(window->request_send()) : static_cast<void>(send());
        ASSERT_EQ(window->on_received(3), CreditError::none);
        ASSERT_EQ(send_own(FrameKind::heartbeat), Status::ok);
        EXPECT_FALSE(last_has_waited()) << "it would have had the one in reserve";
        ASSERT_EQ(send(), Status::ok);
        EXPECT_TRUE(last_has_waited());
        ASSERT_EQ(send(), Status::ok);
        EXPECT_FALSE(last_has_waited());
    }
}

// A larger window of the peer's would be of no use.
TEST_F(SendRules, WhoWaitsForASlotDoesNotWaitForTheWindow) {
    open(2, 64);
    ASSERT_EQ(send(), Status::ok);
    EXPECT_EQ(send(), Status::again);
    EXPECT_FALSE(window->request_send());
    static_cast<void>(window->release(Cookie{0}));
    ASSERT_EQ(send(), Status::ok);
    EXPECT_FALSE(last_has_waited());
}

TEST_F(SendRules, AWriteNeedsACreditWhoeverTellsOfIt) {
    for (const bool by_immediate : {true, false}) {
        open(64, 3, by_immediate);
        EXPECT_TRUE(window->can_write());
        for (int frame = 0; frame < 2; ++frame)
            ASSERT_EQ(send(), Status::ok);
        EXPECT_FALSE(window->can_write()) << by_immediate;
        EXPECT_FALSE(window->request_write());
        EXPECT_FALSE(window->take_wish());
    }
}

TEST_F(SendRules, WithoutASlotNotEvenTheSessionsOwnFrameLeaves) {
    open(1, 64);
    EXPECT_TRUE(window->can_send_own());
    ASSERT_EQ(send_own(FrameKind::credit), Status::ok);
    EXPECT_FALSE(window->can_send_own());
}

// --- counting -------------------------------------------------------------------------------

TEST_F(SendRules, WhatWasNotSentIsNotCounted) {
    open(64, 64);
    pipe.answer = Status::closed;
    EXPECT_EQ(send(1000), Status::closed);
    SessionCounters counters = window->counters();
    EXPECT_EQ(counters.frames_sent + counters.bytes_sent + counters.unconfirmed, 0U);
    EXPECT_EQ(counters.again, 0U) << "a connection that broke is no want of room";
    EXPECT_EQ(counters.credits, 64U);
    pipe.answer = Status::ok;
    EXPECT_EQ(send(1000), Status::ok);
    counters = window->counters();
    EXPECT_EQ(counters.frames_sent, 1U);
    EXPECT_EQ(counters.bytes_sent, 1000U);
    EXPECT_EQ(counters.unconfirmed, 1U);
}

TEST_F(SendRules, EachRefusalForWantOfRoomIsCounted) {
    open(2, 64, false);
    ASSERT_EQ(send(), Status::ok);
    EXPECT_EQ(send(), Status::again);
    EXPECT_EQ(window->write(pipe, {.slices = {}, .target = {}, .notice = 1}, Cookie{1}),
              Status::again);
    EXPECT_EQ(window->counters().again, 2U);
    EXPECT_EQ(send(frame_bytes), Status::too_large);
    EXPECT_EQ(window->counters().again, 2U) << "room would not help";
}

// --- a window that nobody uses --------------------------------------------------------------

TEST_F(SendRules, BehindAHeartbeatEachReceiveOfAWindowThatHasGrownIsUsedOnce) {
    open(64, 4);
    ASSERT_EQ(send_own(FrameKind::heartbeat), Status::ok);
    EXPECT_FALSE(window->must_send_credit()) << "it has not grown";
    ASSERT_EQ(window->on_window(16), CreditError::none); // one of them is used
    ASSERT_EQ(send_own(FrameKind::heartbeat), Status::ok);
    int frames = 0;
    for (; window->must_send_credit() && frames < 100; ++frames) {
        ASSERT_EQ(send_own(FrameKind::credit), Status::ok);
        ASSERT_EQ(window->on_received(1), CreditError::none);
    }
    EXPECT_EQ(frames, 17) << "the first tells how late it is, and comes round again";
}

TEST_F(SendRules, HalfOfTheCreditsAreLeftToTheServiceMeanwhile) {
    open(64, 4);
    ASSERT_EQ(window->on_window(16), CreditError::none);
    ASSERT_EQ(send_own(FrameKind::heartbeat), Status::ok);
    while (window->must_send_credit())
        ASSERT_EQ(send_own(FrameKind::credit), Status::ok);
    EXPECT_EQ(window->counters().credits, 8U);
    ASSERT_EQ(window->on_received(1), CreditError::none);
    EXPECT_TRUE(window->must_send_credit()) << "and it goes on when more are there";
}

// --- copying --------------------------------------------------------------------------------

TEST_F(SendRules, SmallFramesLeaveInOnePiece) {
    open(64, 64);
    for (const std::size_t bytes :
         {std::size_t{0}, frame_extension_limit, frame_extension_limit + 1}) {
        ASSERT_EQ(send(bytes), Status::ok);
        EXPECT_EQ(pipe.sent.back().pieces, bytes <= frame_extension_limit ? 1U : 2U);
        EXPECT_EQ(pipe.sent.back().body_bytes(), bytes);
    }
}

TEST_F(SendRules, AsManySlicesAsItSaysLeaveFromWhereTheyLie) {
    open(64, 64);
    std::ranges::generate(memory.memory(),
                          [value = 0U]() mutable { return static_cast<std::byte>(++value % 251); });
    ASSERT_EQ(window->segment_limit(), 3U);
    for (std::size_t count = 1; count <= slice_limit; ++count) {
        const std::uint64_t before = window->counters().gathered;
        ASSERT_EQ(send(60, count), Status::ok);
        static_cast<void>(window->release(Cookie{0})); // its place is taken by the next
        const ScriptedConnection::Sent& frame = pipe.sent.back();
        EXPECT_EQ(window->counters().gathered - before, count > 3 ? 1U : 0U) << count;
        EXPECT_EQ(frame.pieces, 1 + std::min<std::size_t>(count, 3)) << count;
        EXPECT_TRUE(std::ranges::equal(std::span{frame.bytes}.subspan(frame_header_bytes),
                                       memory.memory().first(60 * count)));
    }
}

TEST_F(SendRules, WhereAllIsEncryptedNothingLeavesFromWhereItLies) {
    for (const auto level : {access::Protection::integrity, access::Protection::privacy}) {
        open(64, 64);
        window->seal_with(FrameSealer{
            level, access::Sealer{access::Cipher::aes_256_gcm, access::Secret::random()}});
        EXPECT_EQ(window->segment_limit(), level == access::Protection::privacy ? 0U : 2U);
    }
}

// Of a session's frames that are copied one may always be under way, whatever others hold.
TEST_F(SendRules, WithoutMemoryToGatherInAFrameWaitsForTheOneBefore) {
    window.emplace(64, little);
    window->open({.receive_count = 64,
                  .peer_receive_count = 64,
                  .frame_bytes = frame_bytes,
                  .segment_limit = 4,
                  .by_immediate = true});
    ASSERT_EQ(send(2000, 8), Status::ok);
    EXPECT_EQ(send(2000, 8), Status::again);
    EXPECT_FALSE(window->can_send());
    EXPECT_EQ(window->counters().frames_sent, 1U);
    EXPECT_EQ(window->counters().gathered, 1U);
    static_cast<void>(window->release(Cookie{0}));
    EXPECT_TRUE(window->take_wish());
    EXPECT_EQ(send(2000, 8), Status::ok);
    EXPECT_EQ(pipe.sent.size(), 2U);
}

} // namespace
} // namespace netio::test
