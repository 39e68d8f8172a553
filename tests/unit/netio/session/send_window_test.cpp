// SPDX-License-Identifier: Apache-2.0
#include "netio/session/send_window.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace netio {
namespace {

struct OpenWindow : SendWindow {
    OpenWindow(std::size_t slots, bool by_immediate) : SendWindow{slots} {
        open({.receive_count = 8,
              .peer_receive_count = 8,
              .frame_bytes = 1024,
              .segment_limit = 4,
              .by_immediate = by_immediate});
    }
};

TEST(SendWindow, BeforeThePeersTermsAreKnownNothingMayBeSent) {
    const SendWindow window{8};
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
        SendWindow window{8};
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
        SendWindow window{8};
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

} // namespace
} // namespace netio
