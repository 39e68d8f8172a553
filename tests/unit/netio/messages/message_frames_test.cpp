// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/page.hpp"
#include "netio/messages/message_frames.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace netio::message_frames_test {
namespace {

using testing::ElementsAre;

std::vector<int> numbers(std::span<const std::byte> bytes) {
    std::vector<int> numbers;
    for (const std::byte byte : bytes)
        numbers.push_back(std::to_integer<int>(byte));
    return numbers;
}

TEST(MessageFrames, AFragmentHasItsOffsetAndTheTotal) {
    const auto extension = messages::encode({.offset = 0x01020304, .total = 0x0a0b0c0d});
    EXPECT_THAT(numbers(extension), ElementsAre(4, 3, 2, 1, 0x0d, 0x0c, 0x0b, 0x0a));
    const FragmentPlace place = messages::decode_fragment(extension);
    EXPECT_EQ(place.offset, 0x01020304U);
    EXPECT_EQ(place.total, 0x0a0b0c0dU);
}

TEST(MessageFrames, TheHandshakeContainsTheLargestMessageSize) {
    const Hello hello = messages::hello(0x01020304);
    EXPECT_EQ(hello.service, Service::messages);
    EXPECT_THAT(numbers(hello.service_data.span()), ElementsAre(4, 3, 2, 1));
    ConnectionData data;
    const std::size_t size = encode(hello, data);
    Hello peer;
    ASSERT_EQ(decode(std::span{data}.first(size), messages::service_bytes, peer), RejectCode::none);
    EXPECT_EQ(messages::largest_message_bytes(peer), 0x01020304U);
}

// Every message of up to four parts of 0 to 3 bytes, and every piece of it.
TEST(MessageParts, EveryPieceOfEveryMessageIsCopied) {
    std::vector<std::byte> bytes(12);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i + 1);
    for (unsigned sizes = 0; sizes < 256; ++sizes) {
        std::vector<std::span<const std::byte>> parts;
        std::size_t total = 0;
        for (unsigned part = 0; part < 4; ++part) {
            const std::size_t size = sizes >> (2 * part) & 3U;
            parts.push_back(std::span<const std::byte>{bytes}.subspan(total, size));
            total += size;
        }
        ASSERT_EQ(size_of(parts), total);
        for (std::size_t offset = 0; offset <= total; ++offset) {
            for (std::size_t size = 0; offset + size <= total; ++size) {
                std::vector<std::byte> out(size + 1, std::byte{0xff});
                copy_parts(parts, offset, std::span{out}.first(size));
                const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
                ASSERT_TRUE(std::equal(out.begin(), out.end() - 1, begin))
                    << size << " bytes at " << offset;
                ASSERT_EQ(out.back(), std::byte{0xff}) << "beyond the end";
            }
        }
    }
}

TEST(MessageParts, WithoutBytesAreEmpty) {
    EXPECT_EQ(size_of({}), 0U);
    copy_parts({}, 0, {});
}

} // namespace
} // namespace netio::message_frames_test
