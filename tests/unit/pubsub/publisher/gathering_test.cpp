// SPDX-License-Identifier: Apache-2.0

// Small messages whose memory is lent, and that have to wait for a peer.

#include "tests/unit/pubsub/publisher/queue_peer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace netio::pubsub {
namespace {

using test::body_limit;
using test::QueuePeer;
using testing::ElementsAre;
using testing::IsEmpty;

struct Small {
    RegisteredBuffer memory{65536};
    std::deque<LentMessage> messages;
    const LentMessage& make(std::uint64_t fid, std::size_t bytes, std::string_view header = {}) {
        LentMessage& message = messages.emplace_back();
        message.fid = Fid{fid};
        message.status = static_cast<std::uint8_t>(fid);
        message.header_bytes = static_cast<std::uint8_t>(header.size());
        std::ranges::transform(header, message.header.begin(),
                               [](char c) { return static_cast<std::byte>(c); });
        message.slice_count = 2;
        const std::size_t begin = 100 * (messages.size() - 1);
        message.slices[0] = memory.slice(begin, bytes / 2);
        message.slices[1] = memory.slice(begin + bytes / 2, bytes - bytes / 2);
        message.total_bytes = header.size() + bytes;
        return message;
    }
    void add(SendQueue& queue, std::uint64_t fid, std::size_t bytes = 40) {
        queue.add_message(make(fid, bytes), {.cookie = Cookie{fid}, .amount = 1});
    }
    void add_prompt(SendQueue& queue, std::uint64_t fid, std::size_t bytes = 40) {
        queue.add_message(make(fid, bytes), {.cookie = Cookie{fid}, .amount = 1, .prompt = true});
    }
};

struct InPage {
    Fid fid{};
    std::string text;
    std::uint8_t status = 0;
    bool operator==(const InPage&) const = default;
};
std::vector<InPage> read_page(const ReadyFrame& frame) {
    std::vector<InPage> found;
    const Slice& slice = frame.slices[0];
    EXPECT_TRUE(visit_page({slice.data, slice.size},
                           [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
                               std::string text;
                               for (const std::byte byte : message)
                                   text.push_back(static_cast<char>(byte));
                               found.push_back({fid, std::move(text), status});
                               return true;
                           }));
    return found;
}
std::vector<Cookie> cookies_of(const std::vector<SendQueue::Returned>& returned) {
    std::vector<Cookie> cookies;
    for (const SendQueue::Returned& each : returned) {
        EXPECT_EQ(each.frames, 1U);
        cookies.push_back(each.cookie);
    }
    return cookies;
}

TEST(Gathering, SmallMessagesThatWaitLeaveTogetherInTheirOrder) {
    QueuePeer peer;
    Small small;
    std::ranges::fill(small.memory.memory(), std::byte{'x'});
    small.memory.data()[100] = std::byte{'b'};
    peer.queue.add_message(small.make(1, 1), {.cookie = Cookie{1}, .amount = 1});
    peer.queue.add_message(small.make(2, 3, "head"), {.cookie = Cookie{2}, .amount = 1});
    peer.queue.add_message(small.make(1, 0), {.cookie = Cookie{3}, .amount = 1});
    ReadyFrame frame;
    ASSERT_TRUE(peer.queue.prepare({.post_limit = SIZE_MAX, .body_limit = body_limit}, frame));
    EXPECT_EQ(frame.kind, page_kind);
    EXPECT_EQ(frame.flags, gathered_flag);
    EXPECT_THAT(read_page(frame), ElementsAre(InPage{Fid{1}, "x", 1}, InPage{Fid{2}, "headbxx", 2},
                                              InPage{Fid{1}, "", 1}));
    peer.take_one();
    EXPECT_TRUE(peer.queue.has_drained());
    EXPECT_EQ(peer.queue.holding().posted, 3U);
    EXPECT_EQ(peer.queue.kept(), 3U);
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{1}, Cookie{2}, Cookie{3}));
    EXPECT_EQ(peer.queue.holding().all(), 0U);
}

TEST(Gathering, AMessageThatWaitsAloneIsNotCopied) {
    QueuePeer peer;
    Small small;
    small.add_prompt(peer.queue, 1);
    peer.queue.add_gap(Fid{1}, 1);
    small.add_prompt(peer.queue, 2);
    peer.queue.add_answer(subscription_answer_kind, std::array<std::byte, 8>{});
    small.add_prompt(peer.queue, 3);
    small.add_prompt(peer.queue, 4, 2 * body_limit + 1);
    peer.take_all();
    EXPECT_THAT(peer.kinds,
                ElementsAre(message_kind, gap_kind, message_kind, subscription_answer_kind,
                            message_kind, fragment_kind, fragment_kind, fragment_kind));
}

// Nothing is under way: it leaves at once. Then it is worth waiting, until some of that is sent.
TEST(Gathering, AMessageWaitsForOthersWhileOneIsUnderWay) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1);
    EXPECT_TRUE(peer.take_one());
    small.add(peer.queue, 2);
    small.add(peer.queue, 3);
    EXPECT_FALSE(peer.take_one());
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{1}));
    EXPECT_TRUE(peer.take_one());
    EXPECT_THAT(peer.kinds, ElementsAre(message_kind, page_kind));
}

TEST(Gathering, WhatIsPromptDoesNotWaitForOthers) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 1; i <= 3; ++i) {
        small.add_prompt(peer.queue, i);
        EXPECT_TRUE(peer.take_one());
    }
    EXPECT_THAT(peer.kinds, testing::Each(message_kind));
}

TEST(Gathering, NobodyWaitsOnceThereIsEnoughForAFrame) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1);
    EXPECT_TRUE(peer.take_one());
    std::uint64_t fid = 2;
    for (std::size_t bytes = 0; bytes < body_limit; bytes += 1024) {
        EXPECT_FALSE(peer.take_one());
        small.add(peer.queue, fid++, 1024);
    }
    EXPECT_TRUE(peer.take_one());
    QueuePeer wide{.frame_bytes = 8 * Gathering::enough_bytes};
    small.add(wide.queue, 1);
    EXPECT_TRUE(wide.take_one());
    small.add(wide.queue, 2, Gathering::enough_bytes - 1);
    EXPECT_FALSE(wide.take_one());
    small.add(wide.queue, 3, 1);
    EXPECT_TRUE(wide.take_one()) << "a large frame need not be full";
}

// A third of a frame is what is worth waiting and copying; more than that leaves as it is.
TEST(Gathering, OfThoseThatShareAFrameThreeHavePlace) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1);
    EXPECT_TRUE(peer.take_one());
    small.add(peer.queue, 2, body_limit / 3 + 1);
    EXPECT_TRUE(peer.take_one()) << "too large to wait";
    small.add(peer.queue, 3, body_limit / 3);
    EXPECT_FALSE(peer.take_one());
    small.add(peer.queue, 4, body_limit / 3 + 1);
    peer.complete_one();
    peer.complete_one();
    peer.take_all();
    EXPECT_THAT(peer.kinds, testing::Each(message_kind));
}

TEST(Gathering, WhatIsSentInFragmentsDoesNotWaitBetweenThem) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1, 3 * body_limit);
    peer.take_all();
    EXPECT_GT(peer.kinds.size(), 2U);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST(Gathering, LeavesToADeviceWhatIsLargerThanIsWorthACopy) {
    for (const bool is_device : {false, true}) {
        const std::size_t limit =
            is_device ? Gathering::device_message_limit : Gathering::message_limit;
        Small small;
        QueuePeer peer{.frame_bytes = 4 * Gathering::message_limit, .by_device = is_device};
        small.add_prompt(peer.queue, 1, limit);
        small.add_prompt(peer.queue, 2, limit);
        small.add_prompt(peer.queue, 3, limit + 1);
        small.add_prompt(peer.queue, 4, limit);
        peer.take_all();
        EXPECT_THAT(peer.kinds, ElementsAre(page_kind, message_kind, message_kind)) << limit;
    }
}

TEST(Gathering, WhatWasTakenBackIsNotWaitedFor) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1);
    EXPECT_TRUE(peer.take_one());
    for (std::uint64_t i = 2; i <= 10; ++i) {
        peer.queue.add_message(small.make(i, 1000),
                               {.cookie = Cookie{i}, .amount = 1, .droppable = true});
    }
    for (int i = 0; i < 9; ++i)
        peer.queue.take_back().gap->add(Fid{1}, 1);
    peer.take_all(); // the gap
    small.add(peer.queue, 11);
    EXPECT_FALSE(peer.take_one()) << "there is nothing to leave with";
}

TEST(Gathering, GathersNoMoreThanAFrameAndTheLimitOfPostsTake) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 0; i < 8; ++i)
        small.add_prompt(peer.queue, i, 1000);
    peer.take_one(2);
    EXPECT_EQ(peer.queue.holding().posted, 2U);
    EXPECT_FALSE(peer.take_one(2));
    peer.take_one();
    EXPECT_EQ(peer.queue.holding().posted, 6U) << "four of them are a frame";
    peer.take_one();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, page_kind, page_kind));
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{0}, Cookie{1}));
}

TEST(Gathering, AStalledPeerIsPostedOneMessageNotAPage) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 0; i < 8; ++i)
        small.add(peer.queue, i);
    peer.take_all(0);
    EXPECT_THAT(peer.kinds, ElementsAre(message_kind));
    EXPECT_EQ(peer.queue.holding().posted, 1U);
}

// What is prepared and not posted is prepared anew, with what has come meanwhile.
TEST(Gathering, APageThatWasNotPostedIsMadeAgain) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1);
    small.add(peer.queue, 2);
    ReadyFrame frame;
    ASSERT_TRUE(peer.queue.prepare({.post_limit = SIZE_MAX, .body_limit = body_limit}, frame));
    small.add(peer.queue, 3);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind));
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{1}, Cookie{2}, Cookie{3}));
}

TEST(Gathering, WithAllPagesUnderWayMessagesLeaveByThemselves) {
    QueuePeer peer;
    Small small;
    std::uint64_t fid = 0;
    const auto add_two = [&] {
        small.add_prompt(peer.queue, ++fid);
        small.add_prompt(peer.queue, ++fid);
    };
    for (std::size_t i = 0; i < Gathering::page_limit; ++i) {
        add_two();
        peer.take_all();
    }
    EXPECT_THAT(peer.kinds, testing::Each(page_kind));
    peer.kinds.clear();
    add_two();
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(message_kind, message_kind));
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{1}, Cookie{2}));
    peer.kinds.clear();
    add_two();
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind));
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{3}, Cookie{4}))
        << "a page that is under way is not written to";
}

TEST(Gathering, WhatIsInAPageIsNotTakenBackAndWhatWaitsIs) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 1; i <= 3; ++i) {
        peer.queue.add_message(small.make(i, 40),
                               {.cookie = Cookie{i}, .amount = 1, .droppable = true});
    }
    peer.take_one(2);
    EXPECT_EQ(peer.queue.holding().droppable, 1U);
    EXPECT_THAT(peer.queue.take_back().cookies, ElementsAre(Cookie{3}));
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    std::vector<Cookie> kept;
    peer.queue.for_each_kept([&](Cookie cookie, std::size_t) { kept.push_back(cookie); });
    EXPECT_THAT(kept, ElementsAre(Cookie{1}, Cookie{2}));
}

} // namespace
} // namespace netio::pubsub
