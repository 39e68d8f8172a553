// SPDX-License-Identifier: Apache-2.0

// A message whose memory is lent, and the frames that it is cut into.

#include "pubsub/publisher/lent_message.hpp"

#include "pubsub/core/frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace netio::pubsub {
namespace {

// Byte n of the message is n, wherever it lies: its slices have other bytes between them.
class LentMessages : public testing::Test {
  protected:
    LentMessages() { std::ranges::fill(memory.memory(), std::byte{0xff}); }

    LentMessage make(std::size_t header_bytes, const std::vector<std::size_t>& sizes) {
        LentMessage message{.fid = Fid{7}, .status = 3, .number = 11, .slices = {}};
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
    // What arrives of it, whose frames must fit and say what they are; and how many there were.
    std::size_t send(const LentMessage& message, std::size_t body_limit) {
        arrived.clear();
        std::size_t frames = 0;
        ReadyFrame frame; // one for all, as a queue has it
        do {
            const std::size_t offset = arrived.size();
            const std::size_t part = fill_frame(message, body_limit, offset, frame);
            const OutgoingFrame out = frame.outgoing();
            std::vector<std::byte> body{out.extension.begin(), out.extension.end()};
            for (const Slice& slice : out.slices) {
                EXPECT_GT(slice.size, 0U) << "a piece of nothing";
                body.insert(body.end(), slice.data, slice.data + slice.size);
            }
            EXPECT_LE(body.size(), body_limit);
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

// Beside a message of its own a frame has 16 bytes, beside a fragment 24.
TEST_F(LentMessages, LeaveInOneFrameAsLongAsTheyFit) {
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

TEST_F(LentMessages, TakeNoFrameMoreThanTheirFragmentsFill) {
    constexpr std::size_t limit = 64;
    EXPECT_EQ(frames_for(make(0, {80}), limit), 2U);
    EXPECT_EQ(frames_for(make(0, {81}), limit), 3U);
    EXPECT_EQ(frames_for(make(0, {80}), limit, 40), 1U) << "of what is left";
    EXPECT_EQ(frames_for(make(0, {81}), limit, 40), 2U);
}

// The header, the slices and the frames end anywhere, and some slices are empty.
TEST_F(LentMessages, ArriveWholeWhereverTheyAreCut) {
    const std::vector<std::vector<std::size_t>> cuts{
        {}, {1}, {17, 23, 5}, {0, 3, 0, 0, 40, 1, 0}, {64, 64}, {1, 1, 1, 1, 1, 1}};
    for (std::size_t header = 0; header <= 8; ++header) {
        for (const std::vector<std::size_t>& sizes : cuts) {
            const LentMessage message = make(header, sizes);
            for (std::size_t limit = fragment_extension_bytes + 1; limit < 180; ++limit) {
                SCOPED_TRACE(testing::Message() << "header " << header << ", limit " << limit
                                                << ", slices " << sizes.size());
                ASSERT_EQ(send(message, limit), frames_for(message, limit));
                ASSERT_NO_FATAL_FAILURE(expect_whole(arrived, message.total_bytes));
            }
        }
    }
}

TEST_F(LentMessages, AreCopiedWhole) {
    const LentMessage message = make(5, {10, 0, 20});
    std::vector<std::byte> copy(message.total_bytes);
    copy_message(message, copy.data());
    expect_whole(copy, 35);
}

TEST_F(LentMessages, OfAsManySlicesAsThereCanBeAreCopiedWhole) {
    const LentMessage message = make(0, std::vector<std::size_t>(slice_limit, 3));
    std::vector<std::byte> copy(message.total_bytes);
    copy_message(message, copy.data());
    expect_whole(copy, 3 * slice_limit);
}

} // namespace
} // namespace netio::pubsub
