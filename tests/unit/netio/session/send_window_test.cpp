// SPDX-License-Identifier: Apache-2.0
#include "netio/session/send_window.hpp"

#include "tests/unit/netio/session/scripted_connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::test::send_window_test {
namespace {

ByteBudget plenty{std::size_t{1} << 30U};

struct OpenWindow : SendWindow {
    OpenWindow(std::size_t slots, bool by_immediate) : SendWindow{slots, plenty} {
        open({.receive_count = 8,
              .peer_receive_count = 8,
              .frame_bytes = 1024,
              .segment_limit = 4,
              .by_immediate = by_immediate});
    }
};

TEST(SendWindow, BeforeThePeersTermsAreKnownNothingMayBeSent) {
    const SendWindow window{8, plenty};
    EXPECT_FALSE(window.can_send());
    EXPECT_FALSE(window.can_write());
}

TEST(SendWindow, TheLastSlotIsForAFrameThatReturnsCredits) {
    const OpenWindow window{1, true};
    EXPECT_FALSE(window.can_send());
    EXPECT_FALSE(window.can_write());
    EXPECT_TRUE(window.can_send_own());
}

TEST(SendWindow, AWriteWithANoticeUsesTwoSlots) {
    EXPECT_TRUE(OpenWindow(3, false).can_write());
    EXPECT_TRUE(OpenWindow(2, false).can_write()) << "with two slots in all, a write may use both";
    EXPECT_TRUE(OpenWindow(2, true).can_write());
}

TEST(SendWindow, AFailedRequestIsNotifiedOnce) {
    for (const bool write : {false, true}) {
        SendWindow window{8, plenty};
        EXPECT_FALSE(write ? window.request_write() : window.request_send());
        EXPECT_FALSE(window.take_writable_request());
        window.open({.receive_count = 8,
                     .peer_receive_count = 8,
                     .frame_bytes = 1024,
                     .segment_limit = 4,
                     .by_immediate = true});
        EXPECT_TRUE(window.take_writable_request());
        EXPECT_FALSE(window.take_writable_request());
    }
}

TEST(SendWindow, TheHeaderAndTheTagTakeAPieceEach) {
    const auto limit_of = [](std::size_t pieces, const std::function<void(SendWindow&)>& seal) {
        SendWindow window{8, plenty};
        window.open({.receive_count = 8,
                     .peer_receive_count = 8,
                     .frame_bytes = 1024,
                     .segment_limit = pieces,
                     .by_immediate = true});
        seal(window);
        return window.segment_limit();
    };
    const auto open = [](SendWindow&) {};
    EXPECT_EQ(limit_of(2, open), 1U);
    EXPECT_EQ(limit_of(4, open), 3U);
    EXPECT_EQ(limit_of(30, open), slice_limit);
    const auto tagged = [](SendWindow& window) {
        window.seal_with(access::FrameSealer{access::Tagger{access::Secret::random()}});
    };
    EXPECT_EQ(limit_of(2, tagged), 0U);
    EXPECT_EQ(limit_of(4, tagged), 2U);
    EXPECT_EQ(limit_of(30, tagged), slice_limit);
}

TEST(SendWindow, ASuccessfulRequestIsNotNotifiedLater) {
    OpenWindow window{8, true};
    EXPECT_TRUE(window.request_send());
    EXPECT_TRUE(window.request_write());
    EXPECT_FALSE(window.take_writable_request());
}

// --- copied frames --------------------------------------------------------------------------

// Accepts every send and completes none.
struct Pipe final : Connection {
    void open(std::span<const std::byte>) override {}
    Status post_send(std::span<const Slice>, Cookie cookie) override {
        if (result == Status::ok) under_way.push_back(cookie);
        return result;
    }
    Status post_receive(std::span<const Slice>, Cookie) override { return Status::ok; }
    Status post_write(std::span<const Slice>, const RemoteSlice&, std::optional<std::uint32_t>,
                      Cookie) override {
        return Status::ok;
    }
    void close() override {}
    const Capabilities& capabilities() const noexcept override { return can; }
    MemoryDomain& domain() noexcept override { return *nowhere; }
    TimePoint last_sign_of_life(Duration) override { return TimePoint::min(); }
    std::string peer_address() const override { return "peer:1"; }

    Capabilities can;
    MemoryDomain* nowhere = nullptr;
    Status result = Status::ok;
    std::vector<Cookie> under_way;
};

struct CopiedFrames : testing::Test {
    CopiedFrames() {
        window.open({.receive_count = 64,
                     .peer_receive_count = 64,
                     .frame_bytes = 4 * frame_bytes,
                     .segment_limit = 2,
                     .by_immediate = true});
        window.seal_with(access::FrameSealer{
            access::Protection::privacy,
            access::Sealer{access::Cipher::aes_256_gcm, access::Secret::random()}});
    }
    Status send() {
        const Slice slice = memory.slice();
        return window.send(
            pipe, {.kind = first_service_kind, .flags = 0, .extension = {}, .slices = {&slice, 1}},
            Cookie{1});
    }
    static constexpr std::size_t frame_bytes = 2'000'000;
    ByteBudget budget{8 * frame_bytes};
    SendWindow window{64, budget};
    Pipe pipe;
    RegisteredBuffer memory{frame_bytes};
};

TEST_F(CopiedFrames, AreRefusedWhereTheBudgetIsUsedUpUntilOneHasLeft) {
    int count = 0;
    while (send() == Status::ok)
        ++count;
    EXPECT_EQ(count, 3) << "half of the budget; a frame needs little more than an eighth";
    EXPECT_FALSE(window.can_send());
    EXPECT_FALSE(window.take_writable_request());
    static_cast<void>(window.release(pipe.under_way.front()));
    EXPECT_TRUE(window.take_writable_request());
    EXPECT_EQ(send(), Status::ok);
    EXPECT_EQ(send(), Status::again);
}

TEST_F(CopiedFrames, GiveTheirMemoryBackWhenTheyHaveLeft) {
    while (send() == Status::ok) {
    }
    const std::size_t most = budget.used();
    for (const Cookie each : pipe.under_way)
        static_cast<void>(window.release(each));
    EXPECT_LT(budget.used(), most);
    EXPECT_LE(budget.used(), std::size_t{4} << 20U);
}

// No completion will release this memory.
TEST_F(CopiedFrames, ThatCouldNotBePostedHoldNoMemoryBack) {
    pipe.result = Status::closed;
    EXPECT_EQ(send(), Status::closed);
    pipe.result = Status::ok;
    int count = 0;
    while (send() == Status::ok)
        ++count;
    EXPECT_EQ(count, 3);
}

constexpr std::size_t plenty_bytes = std::size_t{1} << 30U;
constexpr std::size_t large = 1000 * 1000;

// A peer may announce that it accepts frames of 4 GiB.
TEST(SendBufferPool, GrowsWithTheFramesAndNotWithThePeersLimit) {
    ByteBudget budget{plenty_bytes};
    SendBufferPool memory{2, budget};
    for (std::size_t bytes = 1; bytes <= (1U << 20U); bytes += bytes / 2 + 1) {
        const std::size_t size = memory.gather(0, bytes, UINT32_MAX)->size();
        EXPECT_GE(size, bytes);
        EXPECT_LE(size, 2 * bytes + frame_extension_limit);
        memory.release(0);
    }
    EXPECT_LE(memory.held(), 2U << 20U) << "one at a time";
}

TEST(SendBufferPool, IsNeverLargerThanThePeerTakes) {
    ByteBudget budget{plenty_bytes};
    SendBufferPool memory{1, budget};
    static_cast<void>(memory.gather(0, 600, 1000));
    memory.release(0);
    EXPECT_EQ(memory.gather(0, 700, 1000)->size(), 1000U);
}

TEST(SendBufferPool, IsReleasedAfterTheFrameExceptForASmallRest) {
    ByteBudget budget{plenty_bytes};
    {
        SendBufferPool memory{64, budget};
        for (std::uint32_t slot = 0; slot < 64; ++slot)
            ASSERT_NE(memory.gather(slot, large, large), nullptr);
        EXPECT_GE(memory.held(), 64 * large);
        EXPECT_EQ(memory.held(), budget.used());
        for (std::uint32_t slot = 0; slot < 64; ++slot)
            memory.release(slot);
        EXPECT_GE(memory.held(), large) << "kept for the next frame";
        EXPECT_LE(memory.held(), std::size_t{4} << 20U);
        EXPECT_EQ(memory.held(), budget.used());
    }
    EXPECT_EQ(budget.used(), 0U);
}

TEST(SendBufferPool, EachSessionMayUseHalfOfTheRemainingBudget) {
    ByteBudget budget{16 * large};
    SendBufferPool one{64, budget};
    SendBufferPool other{64, budget};
    const auto fill = [](SendBufferPool& memory) {
        std::uint32_t count = 0;
        while (memory.gather(count, large, large) != nullptr)
            ++count;
        EXPECT_TRUE(memory.is_short());
        return count;
    };
    EXPECT_EQ(fill(one), 8U);
    EXPECT_EQ(fill(other), 4U);
    one.release(3);
    EXPECT_FALSE(one.is_short());
}

TEST(SendBufferPool, OneFrameMayAlwaysBeUnderWayAndNoneIsKeptThen) {
    ByteBudget budget{1000};
    SendBufferPool one{4, budget};
    SendBufferPool other{4, budget};
    for (SendBufferPool* const each : {&one, &other, &one}) {
        ASSERT_NE(each->gather(0, large, large), nullptr);
        EXPECT_EQ(each->gather(1, large, large), nullptr);
        EXPECT_TRUE(each->is_short());
        each->release(0);
        EXPECT_FALSE(each->is_short());
        EXPECT_EQ(budget.used(), 0U);
    }
}

// Control frames of a stream, answers, gaps: these are never repeated.
TEST(SendBufferPool, SmallFramesAlwaysGetMemory) {
    ByteBudget budget{1000};
    SendBufferPool memory{64, budget};
    ASSERT_NE(memory.gather(0, large, large), nullptr);
    for (std::uint32_t slot = 1; slot < 64; ++slot)
        ASSERT_NE(memory.gather(slot, 4096, large), nullptr);
    EXPECT_FALSE(memory.is_short());
}

// Memory that a session keeps for its next frames must not prevent a frame from being sent.
TEST(SendBufferPool, KeptMemoryIsReleasedWhenNeeded) {
    ByteBudget budget{8 * large};
    SendBufferPool memory{4, budget};
    ASSERT_NE(memory.gather(0, large, large), nullptr);
    ASSERT_NE(memory.gather(1, large, large), nullptr);
    ASSERT_NE(memory.gather(2, large, large), nullptr);
    memory.release(1);
    memory.release(2);
    EXPECT_NE(memory.gather(1, 3 * large, 3 * large), nullptr);
    EXPECT_LE(memory.held(), 4 * large);
}

TEST(SendBufferPool, KeepsFourMegabytesForTheNextAndNoMore) {
    constexpr std::size_t most = std::size_t{4} << 20U;
    ByteBudget budget{plenty_bytes};
    SendBufferPool memory{1, budget};
    ASSERT_NE(memory.gather(0, most, most), nullptr);
    memory.release(0);
    EXPECT_EQ(memory.held(), most);
    ASSERT_NE(memory.gather(0, most + 1, most + 1), nullptr);
    memory.release(0);
    EXPECT_EQ(memory.held(), 0U);
}

TEST(SendBufferPool, KeepsNothingWhereHalfOfAllIsUsed) {
    for (const std::size_t more : {0U, 2U}) {
        ByteBudget budget{2 * large + more};
        SendBufferPool memory{1, budget};
        ASSERT_NE(memory.gather(0, large, large), nullptr);
        memory.release(0);
        EXPECT_EQ(memory.held(), more == 0 ? 0 : large);
    }
}

TEST(SendBufferPool, KeepsSomeHoweverOftenItIsUsed) {
    ByteBudget budget{plenty_bytes};
    SendBufferPool memory{1, budget};
    for (int frame = 0; frame < 100; ++frame) {
        ASSERT_NE(memory.gather(0, large, large), nullptr);
        memory.release(0);
        ASSERT_EQ(memory.held(), large) << frame;
    }
}

// A send window at its limits: waiting, counters, and copies.

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

TEST_F(SendRules, TheFirstServiceFrameAfterAWaitIsMarked) {
    for (const bool asked : {false, true}) { // a wait by request_send() or by send()
        open(64, 4);
        while (window->can_send())
            ASSERT_EQ(send(), Status::ok);
        EXPECT_FALSE(last_has_waited());
        asked ? static_cast<void>(window->request_send()) : static_cast<void>(send());
        ASSERT_EQ(window->on_received(3), CreditError::none);
        ASSERT_EQ(send_own(FrameKind::heartbeat), Status::ok);
        EXPECT_FALSE(last_has_waited()) << "the session could have used the reserved credit";
        ASSERT_EQ(send(), Status::ok);
        EXPECT_TRUE(last_has_waited());
        ASSERT_EQ(send(), Status::ok);
        EXPECT_FALSE(last_has_waited());
    }
}

// A larger window of the peer would not help.
TEST_F(SendRules, AWaitForASlotIsNotAWaitForTheWindow) {
    open(2, 64);
    ASSERT_EQ(send(), Status::ok);
    EXPECT_EQ(send(), Status::again);
    EXPECT_FALSE(window->request_send());
    static_cast<void>(window->release(Cookie{0}));
    ASSERT_EQ(send(), Status::ok);
    EXPECT_FALSE(last_has_waited());
}

TEST_F(SendRules, AWriteNeedsACreditWithAnyNotice) {
    for (const bool by_immediate : {true, false}) {
        open(64, 3, by_immediate);
        EXPECT_TRUE(window->can_write());
        for (int frame = 0; frame < 2; ++frame)
            ASSERT_EQ(send(), Status::ok);
        EXPECT_FALSE(window->can_write()) << by_immediate;
        EXPECT_FALSE(window->request_write());
        EXPECT_FALSE(window->take_writable_request());
    }
}

TEST_F(SendRules, WithoutASlotNoFrameIsSent) {
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
    EXPECT_EQ(counters.again, 0U) << "a broken connection is not a lack of room";
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

// --- an unused window -----------------------------------------------------------------------

TEST_F(SendRules, AfterAHeartbeatEachReceiveOfAGrownWindowIsUsedOnce) {
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
    EXPECT_EQ(frames, 17) << "the first one carries the delay, and its receive is used again";
}

TEST_F(SendRules, HalfOfTheCreditsAreLeftToTheService) {
    open(64, 4);
    ASSERT_EQ(window->on_window(16), CreditError::none);
    ASSERT_EQ(send_own(FrameKind::heartbeat), Status::ok);
    while (window->must_send_credit())
        ASSERT_EQ(send_own(FrameKind::credit), Status::ok);
    EXPECT_EQ(window->counters().credits, 8U);
    ASSERT_EQ(window->on_received(1), CreditError::none);
    EXPECT_TRUE(window->must_send_credit()) << "and continues when there are more credits";
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

TEST_F(SendRules, SlicesUpToTheSegmentLimitAreNotCopied) {
    open(64, 64);
    std::ranges::generate(memory.memory(),
                          [value = 0U]() mutable { return static_cast<std::byte>(++value % 251); });
    ASSERT_EQ(window->segment_limit(), 3U);
    for (std::size_t count = 1; count <= slice_limit; ++count) {
        const std::uint64_t before = window->counters().gathered;
        ASSERT_EQ(send(60, count), Status::ok);
        static_cast<void>(window->release(Cookie{0})); // the next frame uses its slot
        const ScriptedConnection::Sent& frame = pipe.sent.back();
        EXPECT_EQ(window->counters().gathered - before, count > 3 ? 1U : 0U) << count;
        EXPECT_EQ(frame.pieces, 1 + std::min<std::size_t>(count, 3)) << count;
        EXPECT_TRUE(std::ranges::equal(std::span{frame.bytes}.subspan(frame_header_bytes),
                                       memory.memory().first(60 * count)));
    }
}

TEST_F(SendRules, EncryptionAlwaysCopies) {
    for (const auto level : {access::Protection::integrity, access::Protection::privacy}) {
        open(64, 64);
        window->seal_with(access::FrameSealer{
            level, access::Sealer{access::Cipher::aes_256_gcm, access::Secret::random()}});
        EXPECT_EQ(window->segment_limit(), level == access::Protection::privacy ? 0U : 2U);
    }
}

// One copied frame of a session may always be in flight, whatever memory others hold.
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
    EXPECT_TRUE(window->take_writable_request());
    EXPECT_EQ(send(2000, 8), Status::ok);
    EXPECT_EQ(pipe.sent.size(), 2U);
}

} // namespace
} // namespace netio::test::send_window_test
