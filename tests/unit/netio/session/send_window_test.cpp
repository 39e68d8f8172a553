// SPDX-License-Identifier: Apache-2.0
#include "netio/session/send_window.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio {
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

TEST(SendWindow, AWriteThatAFrameTellsOfTakesTwoSlotsAndLeavesTheLast) {
    EXPECT_TRUE(OpenWindow(3, false).can_write());
    EXPECT_TRUE(OpenWindow(2, false).can_write()) << "with two in all it takes both";
    EXPECT_TRUE(OpenWindow(2, true).can_write());
}

TEST(SendWindow, WhoAskedInVainIsToldOnce) {
    for (const bool write : {false, true}) {
        SendWindow window{8, plenty};
        EXPECT_FALSE(write ? window.request_write() : window.request_send());
        EXPECT_FALSE(window.take_wish());
        window.open({.receive_count = 8,
                     .peer_receive_count = 8,
                     .frame_bytes = 1024,
                     .segment_limit = 4,
                     .by_immediate = true});
        EXPECT_TRUE(window.take_wish());
        EXPECT_FALSE(window.take_wish());
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
        window.seal_with(FrameSealer{access::Tagger{access::Secret::random()}});
    };
    EXPECT_EQ(limit_of(2, tagged), 0U);
    EXPECT_EQ(limit_of(4, tagged), 2U);
    EXPECT_EQ(limit_of(30, tagged), slice_limit);
}

TEST(SendWindow, WhoCouldSendAtOnceIsNotToldLater) {
    OpenWindow window{8, true};
    EXPECT_TRUE(window.request_send());
    EXPECT_TRUE(window.request_write());
    EXPECT_FALSE(window.take_wish());
}

// --- what is copied -------------------------------------------------------------------------

// Takes everything, and has sent nothing yet.
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
        window.seal_with(
            FrameSealer{access::Protection::privacy,
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
    EXPECT_EQ(count, 3)
        << "half of the budget, which each frame is a little more than an eighth of";
    EXPECT_FALSE(window.can_send());
    EXPECT_FALSE(window.take_wish());
    static_cast<void>(window.release(pipe.under_way.front()));
    EXPECT_TRUE(window.take_wish());
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

// Nothing will be released that says so.
TEST_F(CopiedFrames, ThatCouldNotBePostedHoldNoMemoryBack) {
    pipe.result = Status::closed;
    EXPECT_EQ(send(), Status::closed);
    pipe.result = Status::ok;
    int count = 0;
    while (send() == Status::ok)
        ++count;
    EXPECT_EQ(count, 3);
}

} // namespace
} // namespace netio
