// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/send_queue.hpp"

#include "pubsub/core/wire.hpp"
#include "tests/unit/pubsub/publisher/queue_peer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::pubsub::small_messages_test {
namespace {

using test::body_limit;
using test::QueuePeer;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

// A zero-copy message, and its division into frames.

// Byte n of the message is n, wherever it is: its slices have other bytes between them.
class ZeroCopyMessages : public testing::Test {
  protected:
    ZeroCopyMessages() { std::ranges::fill(memory.memory(), std::byte{0xff}); }

    ZeroCopyMessage make(std::size_t header_bytes, const std::vector<std::size_t>& sizes) {
        ZeroCopyMessage message{.fid = Fid{7}, .status = 3, .number = 11, .slices = {}};
        std::size_t next = 0;
        for (; next < header_bytes; ++next)
            message.header[next] = static_cast<std::byte>(next);
        message.header_bytes = static_cast<std::uint8_t>(header_bytes);
        std::size_t place = 1;
        for (const std::size_t size : sizes) {
            const Slice slice = memory.slice(place, size);
            for (std::size_t i = 0; i < size; ++i)
                slice.data[i] = static_cast<std::byte>(next++);
            message.slices[message.slice_count++] = slice;
            place += size + 3;
        }
        message.total_bytes = next;
        return message;
    }
    // Sends the message and checks every frame; returns the number of frames. The result is in
    // `arrived`.
    std::size_t send(const ZeroCopyMessage& message, std::size_t frame_bytes) {
        arrived.clear();
        std::size_t frames = 0;
        ReadyFrame frame; // one object for all frames, as in a queue
        do {
            const std::size_t offset = arrived.size();
            const std::size_t part = fill_frame(message, frame_bytes, offset, frame);
            const OutgoingFrame out = frame.outgoing();
            std::vector<std::byte> body{out.extension.begin(), out.extension.end()};
            for (const Slice& slice : out.slices) {
                EXPECT_GT(slice.size, 0U) << "an empty piece";
                body.insert(body.end(), slice.data, slice.data + slice.size);
            }
            EXPECT_LE(body.size(), frame_bytes);
            std::size_t behind = message_extension_bytes;
            if (frame.kind == fragment_kind) {
                const auto fragment = decode_fragment(body).value();
                EXPECT_EQ(fragment.fid, message.fid);
                EXPECT_EQ(fragment.status, message.status);
                EXPECT_EQ(fragment.message_number, message.number);
                EXPECT_EQ(fragment.offset, offset);
                EXPECT_EQ(fragment.total, message.total_bytes);
                behind = fragment_extension_bytes;
            } else {
                EXPECT_EQ(frame.kind, message_kind);
                EXPECT_EQ(decode_message(body).value().fid, message.fid);
                EXPECT_EQ(decode_message(body).value().status, message.status);
            }
            EXPECT_EQ(body.size(), behind + part);
            const auto rest = std::span{body}.subspan(behind);
            arrived.insert(arrived.end(), rest.begin(), rest.end());
            ++frames;
        } while (arrived.size() < message.total_bytes && frames < 1000);
        return frames;
    }
    void expect_whole(std::span<const std::byte> bytes, std::size_t size) const {
        ASSERT_EQ(bytes.size(), size);
        for (std::size_t i = 0; i < size; ++i)
            ASSERT_EQ(bytes[i], static_cast<std::byte>(i)) << i;
    }

    RegisteredBuffer memory{512};
    std::vector<std::byte> arrived;
};

// A frame with a whole message has 16 bytes of overhead, with a fragment 24.
TEST_F(ZeroCopyMessages, LeaveInOneFrameAsLongAsTheyFit) {
    constexpr std::size_t limit = 64;
    EXPECT_TRUE(fits_one_frame(make(0, {48}), limit));
    EXPECT_EQ(frames_for(make(0, {48}), limit), 1U);
    EXPECT_EQ(send(make(0, {48}), limit), 1U);
    EXPECT_FALSE(fits_one_frame(make(0, {49}), limit));
    EXPECT_EQ(frames_for(make(0, {49}), limit), 2U);
    EXPECT_EQ(send(make(0, {49}), limit), 2U);
    EXPECT_EQ(frames_for(make(8, {40}), limit), 1U) << "with the user's header";
    EXPECT_EQ(frames_for(make(8, {41}), limit), 2U);
}

TEST_F(ZeroCopyMessages, TakeNoFrameMoreThanTheirFragmentsFill) {
    constexpr std::size_t limit = 64;
    EXPECT_EQ(frames_for(make(0, {80}), limit), 2U);
    EXPECT_EQ(frames_for(make(0, {81}), limit), 3U);
    EXPECT_EQ(frames_for(make(0, {80}), limit, 40), 1U) << "for the remaining bytes";
    EXPECT_EQ(frames_for(make(0, {81}), limit, 40), 2U);
}

// The header, the slices and the frames end at any position, and some slices are empty.
TEST_F(ZeroCopyMessages, ArriveWholeWhereverTheyAreCut) {
    const std::vector<std::vector<std::size_t>> cuts{
        {}, {1}, {17, 23, 5}, {0, 3, 0, 0, 40, 1, 0}, {64, 64}, {1, 1, 1, 1, 1, 1}};
    for (std::size_t header = 0; header <= 8; ++header) {
        for (const std::vector<std::size_t>& sizes : cuts) {
            const ZeroCopyMessage message = make(header, sizes);
            for (std::size_t limit = fragment_extension_bytes + 1; limit < 180; ++limit) {
                SCOPED_TRACE(testing::Message() << "header " << header << ", limit " << limit
                                                << ", slices " << sizes.size());
                ASSERT_EQ(send(message, limit), frames_for(message, limit));
                ASSERT_NO_FATAL_FAILURE(expect_whole(arrived, message.total_bytes));
            }
        }
    }
}

TEST_F(ZeroCopyMessages, AreCopiedWhole) {
    const ZeroCopyMessage message = make(5, {10, 0, 20});
    std::vector<std::byte> copy(message.total_bytes);
    copy_message(message, copy.data());
    expect_whole(copy, 35);
}

TEST_F(ZeroCopyMessages, WithTheMaximumOfSlicesAreCopiedCompletely) {
    const ZeroCopyMessage message = make(0, std::vector<std::size_t>(slice_limit, 3));
    std::vector<std::byte> copy(message.total_bytes);
    copy_message(message, copy.data());
    expect_whole(copy, 3 * slice_limit);
}

// Small zero-copy messages that have to wait for a peer.

struct Small {
    RegisteredBuffer memory{65536};
    std::deque<ZeroCopyMessage> messages;
    const ZeroCopyMessage& make(std::uint64_t fid, std::size_t bytes,
                                std::string_view header = {}) {
        ZeroCopyMessage& message = messages.emplace_back();
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

TEST(SmallMessageBatcher, SendsWaitingMessagesInOneFrame) {
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
    EXPECT_EQ(peer.queue.usage().posted, 3U);
    EXPECT_EQ(peer.queue.kept(), 3U);
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{1}, Cookie{2}, Cookie{3}));
    EXPECT_EQ(peer.queue.usage().all(), 0U);
}

TEST(SmallMessageBatcher, AMessageThatWaitsAloneIsNotCopied) {
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

// Nothing is in flight: it is sent at once. Then waiting is useful, until part of that is sent.
TEST(SmallMessageBatcher, AMessageWaitsForOthersWhileOneIsUnderWay) {
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

TEST(SmallMessageBatcher, WhatIsPromptDoesNotWaitForOthers) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 1; i <= 3; ++i) {
        small.add_prompt(peer.queue, i);
        EXPECT_TRUE(peer.take_one());
    }
    EXPECT_THAT(peer.kinds, testing::Each(message_kind));
}

TEST(SmallMessageBatcher, NoMessageWaitsOnceAFrameIsFull) {
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
    QueuePeer wide{.frame_bytes = 8 * SmallMessageBatcher::enough_bytes};
    small.add(wide.queue, 1);
    EXPECT_TRUE(wide.take_one());
    small.add(wide.queue, 2, SmallMessageBatcher::enough_bytes - 1);
    EXPECT_FALSE(wide.take_one());
    small.add(wide.queue, 3, 1);
    EXPECT_TRUE(wide.take_one()) << "a large frame need not be full";
}

// Messages up to a third of a frame are worth waiting for and copying; larger ones are sent as they
// are.
TEST(SmallMessageBatcher, OnlyMessagesUpToAThirdOfAFrameWait) {
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

TEST(SmallMessageBatcher, FragmentsDoNotWait) {
    QueuePeer peer;
    Small small;
    small.add(peer.queue, 1, 3 * body_limit);
    peer.take_all();
    EXPECT_GT(peer.kinds.size(), 2U);
    EXPECT_TRUE(peer.queue.has_drained());
}

TEST(SmallMessageBatcher, DeviceReadsLargerMessagesItself) {
    for (const bool is_device : {false, true}) {
        const std::size_t limit = is_device ? SmallMessageBatcher::device_message_limit
                                            : SmallMessageBatcher::message_limit;
        Small small;
        QueuePeer peer{.frame_bytes = 4 * SmallMessageBatcher::message_limit,
                       .by_device = is_device};
        small.add_prompt(peer.queue, 1, limit);
        small.add_prompt(peer.queue, 2, limit);
        small.add_prompt(peer.queue, 3, limit + 1);
        small.add_prompt(peer.queue, 4, limit);
        peer.take_all();
        EXPECT_THAT(peer.kinds, ElementsAre(page_kind, message_kind, message_kind)) << limit;
    }
}

TEST(SmallMessageBatcher, WhatWasTakenBackIsNotWaitedFor) {
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
    EXPECT_FALSE(peer.take_one()) << "no other frame to send with";
}

TEST(SmallMessageBatcher, RespectsFrameAndPostLimits) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 0; i < 8; ++i)
        small.add_prompt(peer.queue, i, 1000);
    peer.take_one(2);
    EXPECT_EQ(peer.queue.usage().posted, 2U);
    EXPECT_FALSE(peer.take_one(2));
    peer.take_one();
    EXPECT_EQ(peer.queue.usage().posted, 6U) << "four of them are a frame";
    peer.take_one();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, page_kind, page_kind));
    EXPECT_THAT(cookies_of(peer.complete_one()), ElementsAre(Cookie{0}, Cookie{1}));
}

TEST(SmallMessageBatcher, AStalledPeerIsPostedOneMessageNotAPage) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 0; i < 8; ++i)
        small.add(peer.queue, i);
    peer.take_all(0);
    EXPECT_THAT(peer.kinds, ElementsAre(message_kind));
    EXPECT_EQ(peer.queue.usage().posted, 1U);
}

// A prepared frame that was not posted is prepared again, with later messages.
TEST(SmallMessageBatcher, APageThatWasNotPostedIsMadeAgain) {
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

TEST(SmallMessageBatcher, SendsSingleMessagesWhenAllPagesInFlight) {
    QueuePeer peer;
    Small small;
    std::uint64_t fid = 0;
    const auto add_two = [&] {
        small.add_prompt(peer.queue, ++fid);
        small.add_prompt(peer.queue, ++fid);
    };
    for (std::size_t i = 0; i < SmallMessageBatcher::page_limit; ++i) {
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
        << "a page in flight is not written to";
}

TEST(SmallMessageBatcher, TakesBackOnlyWhatIsNotPosted) {
    QueuePeer peer;
    Small small;
    for (std::uint64_t i = 1; i <= 3; ++i) {
        peer.queue.add_message(small.make(i, 40),
                               {.cookie = Cookie{i}, .amount = 1, .droppable = true});
    }
    peer.take_one(2);
    EXPECT_EQ(peer.queue.usage().droppable, 1U);
    EXPECT_THAT(peer.queue.take_back().cookies, ElementsAre(Cookie{3}));
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    std::vector<Cookie> kept;
    peer.queue.for_each_kept([&](Cookie cookie, std::size_t) { kept.push_back(cookie); });
    EXPECT_THAT(kept, ElementsAre(Cookie{1}, Cookie{2}));
}

// Queued pages of one subscriber that are sent in one frame.

// Pages of 64 bytes, with two messages of 8 bytes each, whose number is that of the page.
class JoinedPages : public testing::Test {
  protected:
    JoinedPages() { peer.slices = 3; }

    Slice page(std::uint64_t number) {
        std::byte* const begin = memory.data() + 64 * used_;
        PageWriter writer{{begin, 64}};
        for (const std::uint64_t fid : {number, number + 100})
            wire::store(writer.append(Fid{fid}, 0, 8), number);
        return memory.slice(64 * used_++, writer.used());
    }
    void add(std::uint64_t number, SendQueue::Handling handling = {}) {
        handling.cookie = Cookie{number};
        handling.amount = 10;
        peer.queue.add_frame(page_kind, {}, page(number), handling);
    }
    void add_some(std::uint64_t first, std::uint64_t last) {
        for (; first <= last; ++first)
            add(first);
    }
    // The numbers of the messages in the next frame.
    std::vector<std::uint64_t> next_messages() {
        ReadyFrame frame;
        if (!peer.queue.prepare(
                {.post_limit = SIZE_MAX, .body_limit = body_limit, .slice_limit = 3}, frame)) {
            return {};
        }
        std::vector<std::byte> body;
        for (const Slice& slice : std::span{frame.slices}.first(frame.slice_count))
            body.insert(body.end(), slice.data, slice.data + slice.size);
        std::vector<std::uint64_t> numbers;
        EXPECT_TRUE(visit_page(body, [&](Fid, std::span<const std::byte> message, std::uint8_t) {
            numbers.push_back(wire::load<std::uint64_t>(message.data()));
            return true;
        }));
        return numbers;
    }
    std::vector<std::uint64_t> complete() {
        std::vector<std::uint64_t> cookies;
        for (const SendQueue::Returned& each : peer.complete_one()) {
            EXPECT_EQ(each.frames, 1U);
            EXPECT_EQ(each.fate, Fate::sent);
            cookies.push_back(static_cast<std::uint64_t>(each.cookie));
        }
        return cookies;
    }

    RegisteredBuffer memory{64 * 32};
    QueuePeer peer;

  private:
    std::size_t used_ = 0;
};

TEST_F(JoinedPages, AreOnePageAndReturnEachCookieOnce) {
    add_some(1, 7);
    EXPECT_THAT(next_messages(), ElementsAre(1, 1, 2, 2, 3, 3));
    peer.take_all();
    EXPECT_THAT(peer.slice_counts, ElementsAre(3, 3, 1));
    EXPECT_THAT(peer.kinds, Each(page_kind));
    EXPECT_TRUE(peer.queue.has_drained());
    EXPECT_EQ(peer.queue.usage().posted, 70U);
    EXPECT_EQ(peer.queue.kept(), 70U);
    EXPECT_THAT(complete(), ElementsAre(1, 2, 3));
    EXPECT_EQ(peer.queue.usage().posted, 40U);
    EXPECT_THAT(complete(), ElementsAre(4, 5, 6));
    EXPECT_THAT(complete(), ElementsAre(7));
    EXPECT_EQ(peer.queue.usage().all(), 0U);
    EXPECT_EQ(peer.queue.kept(), 0U);
}

TEST_F(JoinedPages, AreLimitedByTheSegmentsOfAFrame) {
    for (const auto& [slices, expected] :
         {std::pair{0U, 1U}, {1U, 1U}, {2U, 2U}, {28U, SendQueue::joined_limit}}) {
        QueuePeer other;
        other.slices = slices;
        for (std::uint64_t i = 0; i < 12; ++i)
            other.queue.add_frame(page_kind, {}, memory.slice(0, 40), {.cookie = Cookie{i}});
        other.take_one();
        EXPECT_THAT(other.slice_counts, ElementsAre(expected)) << slices;
    }
}

TEST_F(JoinedPages, FitTheirFrame) {
    RegisteredBuffer large{body_limit};
    for (const std::size_t size : {body_limit / 2, body_limit / 2, std::size_t{1}})
        peer.queue.add_frame(page_kind, {}, large.slice(0, size), {.amount = 1});
    peer.take_all();
    EXPECT_THAT(peer.slice_counts, ElementsAre(2, 1));
}

TEST_F(JoinedPages, KeepToTheLimitOfWhatIsPosted) {
    add_some(1, 5);
    peer.take_all(20);
    EXPECT_THAT(peer.slice_counts, ElementsAre(2));
    EXPECT_EQ(peer.queue.usage().posted, 20U);
    EXPECT_THAT(complete(), ElementsAre(1, 2));
    peer.take_all(0);
    EXPECT_THAT(peer.slice_counts, ElementsAre(2, 1)) << "the first page in any case";
}

TEST_F(JoinedPages, HaveNothingElseBetweenThem) {
    const std::array<std::byte, fragment_extension_bytes> extension{};
    add_some(1, 2);
    peer.queue.add_gap(Fid{1}, 1);
    add_some(3, 4);
    peer.queue.add_answer(subscription_answer_kind, std::array<std::byte, 8>{});
    add(5);
    peer.queue.add_frame(fragment_kind, extension, page(6), {.cookie = Cookie{6}});
    peer.queue.add_frame(fragment_kind, extension, page(7), {.cookie = Cookie{7}});
    add_some(8, 9);
    add(10, {.droppable = true, .mark = 1});
    add(11, {.droppable = true, .mark = 1});
    add_some(12, 13);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind, page_kind, subscription_answer_kind,
                                        page_kind, fragment_kind, fragment_kind, page_kind,
                                        page_kind, page_kind, page_kind));
    EXPECT_THAT(peer.slice_counts, ElementsAre(2, 0, 2, 0, 1, 1, 1, 2, 1, 1, 2));
}

TEST_F(JoinedPages, TakesBackOnlyPagesThatAreNotPosted) {
    for (std::uint64_t number = 1; number <= 5; ++number)
        add(number, {.droppable = true});
    EXPECT_THAT(next_messages(), ElementsAre(1, 1, 2, 2, 3, 3)) << "prepared, but not posted";
    EXPECT_EQ(peer.queue.usage().droppable, 50U);
    peer.take_one();
    EXPECT_EQ(peer.queue.usage().droppable, 20U);
    EXPECT_EQ(peer.queue.kept(), 30U);
    for (const std::uint64_t number : {5U, 4U}) {
        const auto taken = peer.queue.take_back();
        EXPECT_THAT(taken.cookies, ElementsAre(Cookie{number}));
        taken.gap->add(Fid{number}, 2);
    }
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_THAT(complete(), ElementsAre(1, 2, 3));
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind));
    EXPECT_EQ(peer.queue.usage().all(), 0U);
}

TEST_F(JoinedPages, AreReturnedOnceEachIfThePeerIsGone) {
    add_some(1, 5);
    peer.take_one();
    const auto rest = peer.queue.take_rest(body_limit);
    EXPECT_THAT(rest, ElementsAre(testing::Field(&SendQueue::Returned::cookie, Cookie{4}),
                                  testing::Field(&SendQueue::Returned::cookie, Cookie{5})));
    EXPECT_THAT(complete(), ElementsAre(1, 2, 3));
}

} // namespace
} // namespace netio::pubsub::small_messages_test
