// SPDX-License-Identifier: Apache-2.0
#include "netio/base/frame.hpp"
#include "netio/session/hello.hpp"

#include "netio/access/protection.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace netio {
namespace {

Hello example() {
    Hello hello{.service = Service::publish_subscribe,
                .receive_bytes = 0x01020304,
                .receive_count = 0x0506,
                .heartbeat_ms = 0x0708,
                .instance = 0x1112131415161718,
                .service_data = {}};
    for (std::size_t i = 0; i < 4; ++i)
        hello.service_data.bytes[i] = static_cast<std::byte>(0xa0 + i);
    hello.service_data.size = 4;
    return hello;
}

TEST(Hello, HasTheDocumentedBytes) {
    ConnectionData data;
    ASSERT_EQ(encode(example(), data), 28U);
    const std::vector<int> expected{'N',  'T',  'I',  'O',  2,    0,    2,    0,    4,    3,
                                    2,    1,    6,    5,    8,    7,    0x18, 0x17, 0x16, 0x15,
                                    0x14, 0x13, 0x12, 0x11, 0xa0, 0xa1, 0xa2, 0xa3};
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(data[i]), expected[i]) << "byte " << i;
}

TEST(Hello, ComesBackAlsoWhenTheFabricPadsIt) {
    ConnectionData data;
    const std::size_t size = encode(example(), data);
    for (const std::size_t given : {size, data.size()}) {
        Hello hello;
        ASSERT_EQ(decode(std::span{data}.first(given), 4, hello), RejectCode::none);
        EXPECT_EQ(hello.service, Service::publish_subscribe);
        EXPECT_EQ(hello.receive_bytes, 0x01020304U);
        EXPECT_EQ(hello.receive_count, 0x0506U);
        EXPECT_EQ(hello.heartbeat_ms, 0x0708U);
        EXPECT_EQ(hello.instance, 0x1112131415161718U);
        EXPECT_EQ(hello.service_data.bytes[3], std::byte{0xa3});
    }
}

TEST(Hello, EveryTruncationIsRefused) {
    ConnectionData data;
    const std::size_t size = encode(example(), data);
    for (std::size_t cut = 0; cut < size; ++cut) {
        Hello hello;
        EXPECT_NE(decode(std::span{data}.first(cut), 4, hello), RejectCode::none) << cut;
    }
}

TEST(Hello, APeerThatCannotBeSentToIsRefusedAtTheBounds) {
    Hello peer = example();
    peer.receive_bytes = 1000;
    peer.receive_count = least_session_receive_count;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::none);
    EXPECT_EQ(judge_receives(peer, 1001), RejectCode::receive_too_small);
    peer.receive_count = least_session_receive_count - 1;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::service_data);
    peer.receive_count = most_session_receive_count;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::none);
    peer.receive_count = most_session_receive_count + 1;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::service_data);
    peer.receive_count = least_session_receive_count;
    peer.receive_bytes = least_receive_bytes - 1;
    EXPECT_EQ(judge_receives(peer, 0), RejectCode::receive_too_small);
}

TEST(Hello, AnyChangeOfMagicVersionOrReservedBitsIsRefused) {
    ConnectionData sound;
    const std::size_t size = encode(example(), sound);
    for (const std::size_t byte : {0U, 1U, 2U, 3U, 4U, 5U, 7U}) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            if (byte == 7 && bit == 0) continue; // a key follows
            ConnectionData data = sound;
            data[byte] ^= static_cast<std::byte>(1U << bit);
            Hello hello;
            EXPECT_EQ(decode(std::span{data}.first(size), 4, hello), RejectCode::not_this_protocol)
                << byte << ", " << bit;
        }
    }
}

TEST(Hello, FlagsOfTheGateComeThroughAndOthersAreRefused) {
    ConnectionData data;
    for (unsigned flags = 0; flags < 256; ++flags) {
        Hello said = example();
        said.flags = static_cast<std::uint8_t>(flags);
        const std::size_t size = encode(said, data);
        Hello heard;
        const RejectCode code = decode(std::span{data}.first(size), 4, heard);
        const bool known = access::decode_flags(said.flags).has_value();
        EXPECT_EQ(code, known ? RejectCode::none : RejectCode::not_this_protocol) << flags;
        EXPECT_EQ(heard.flags, known ? said.flags : 0U);
    }
}

TEST(Hello, RejectionsComeBackAndAnythingElseIsNone) {
    ConnectionData data;
    const std::size_t size =
        encode(Rejection{.code = RejectCode::receive_too_small, .required_bytes = 77}, data);
    const Rejection rejection = decode_rejection(std::span{data}.first(size));
    EXPECT_EQ(rejection.code, RejectCode::receive_too_small);
    EXPECT_EQ(rejection.required_bytes, 77U);
    for (std::size_t cut = 0; cut < size; ++cut)
        EXPECT_EQ(decode_rejection(std::span{data}.first(cut)).code, RejectCode::none);
    data[0] ^= std::byte{1};
    EXPECT_EQ(decode_rejection(std::span{data}.first(size)).code, RejectCode::none);
}

ConnectionData full_of(std::byte value) {
    ConnectionData data;
    data.fill(value);
    return data;
}

TEST(Hello, HasNothingOfWhatWasInItsMemory) {
    ConnectionData clean = full_of(std::byte{0});
    ConnectionData used = full_of(std::byte{0xff});
    ASSERT_EQ(encode(example(), clean), encode(example(), used));
    EXPECT_EQ(used, clean) << "what a fabric pads it with is zeros as well";
}

TEST(Hello, KnowsHowMuchOfItIsTheServices) {
    ConnectionData data;
    const std::size_t size = encode(example(), data);
    Hello hello;
    ASSERT_EQ(decode(std::span{data}.first(size), 4, hello), RejectCode::none);
    EXPECT_EQ(hello.service_data.span().size(), 4U);
    ASSERT_EQ(decode(std::span{data}.first(size), 0, hello), RejectCode::none);
    EXPECT_EQ(hello.service_data.span().size(), 0U) << "the rest is what a fabric pads it with";
}

TEST(Hello, ARejectionHasTheDocumentedBytesWhateverWasInItsMemory) {
    ConnectionData data = full_of(std::byte{0xff});
    const Rejection rejection{.code = RejectCode::receive_too_small, .required_bytes = 0x04030201};
    ASSERT_EQ(encode(rejection, data), 12U);
    const std::vector<int> expected{'N', 'T', 'I', 'O', 2, 0, 3, 0, 1, 2, 3, 4};
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(data[i]), expected[i]) << "byte " << i;
}

TEST(Frame, HeaderHasTheDocumentedBytesAndComesBack) {
    std::array<std::byte, frame_header_bytes> bytes;
    const FrameHeader header{.kind = 17, .flags = 1, .credits = 0x0203, .sequence = 0x04050607};
    encode(header, bytes);
    const int expected[] = {17, 1, 3, 2, 7, 6, 5, 4};
    for (std::size_t i = 0; i < bytes.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]);
    EXPECT_EQ(decode_frame_header(bytes), header);
}

} // namespace
} // namespace netio
