// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/frames.hpp"

#include <gmock/gmock.h>

#include <array>
#include <random>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PubsubFrames, MessageExtensionComesBack) {
    std::array<std::byte, message_extension_bytes> bytes;
    EXPECT_EQ(encode(MessageExtension{.fid = Fid{0x0123456789abcdef}, .status = 200}, bytes), 16U);
    const auto decoded = decode_message(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->fid, Fid{0x0123456789abcdef});
    EXPECT_EQ(decoded->status, 200);
}

TEST(PubsubFrames, FragmentExtensionComesBack) {
    std::array<std::byte, fragment_extension_bytes> bytes;
    encode(
        FragmentExtension{
            .fid = Fid{5}, .message_number = 6, .offset = 7, .total = 0xfffffff0, .status = 9},
        bytes);
    const auto decoded = decode_fragment(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->fid, Fid{5});
    EXPECT_EQ(decoded->message_number, 6U);
    EXPECT_EQ(decoded->offset, 7U);
    EXPECT_EQ(decoded->total, 0xfffffff0U);
    EXPECT_EQ(decoded->status, 9);
}

TEST(PubsubFrames, AStatusMayBeAnyByte) {
    std::array<std::byte, fragment_extension_bytes> bytes;
    encode(MessageExtension{.fid = Fid{1}, .status = 255}, bytes);
    ASSERT_TRUE(decode_message(bytes));
    EXPECT_EQ(decode_message(bytes)->status, 255);
    encode(FragmentExtension{.fid = Fid{1}, .total = 1, .status = 255}, bytes);
    ASSERT_TRUE(decode_fragment(bytes));
    EXPECT_EQ(decode_fragment(bytes)->status, 255);
}

TEST(PubsubFrames, PositionsExtensionComesBackAndNothingIsInItsReservedBytes) {
    std::array<std::byte, positions_extension_bytes> bytes;
    EXPECT_EQ(
        encode(PositionsExtension{.instance = 0xfedcba9876543210, .request = UINT32_MAX}, bytes),
        bytes.size());
    const auto decoded = decode_positions(bytes);
    ASSERT_TRUE(decoded) << "without a list behind it";
    EXPECT_EQ(decoded->instance, 0xfedcba9876543210);
    EXPECT_EQ(decoded->request, UINT32_MAX);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        EXPECT_FALSE(decode_positions(std::span{bytes}.first(cut))) << cut;
    encode(PositionsExtension{.instance = 1, .request = 2}, bytes);
    for (std::size_t at = 12; at < 16; ++at) {
        bytes[at] = std::byte{1};
        EXPECT_FALSE(decode_positions(bytes)) << at;
        bytes[at] = std::byte{0};
    }
}

TEST(PubsubFrames, RequestComesBack) {
    const std::array<FidRange, 2> ranges{FidRange{.first = Fid{1}, .last = Fid{1}},
                                         FidRange{.first = Fid{2}, .last = Fid{UINT64_MAX}}};
    std::array<std::byte, 64> bytes;
    const std::size_t size = encode_request(77, ranges, bytes);
    const auto decoded = decode_request(std::span{bytes}.first(size));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->request, 77U);
    EXPECT_THAT(decoded->ranges, ElementsAre(ranges[0], ranges[1]));
}

TEST(PubsubFrames, ARequestMayAskForAPolicy) {
    const FidRange range{.first = Fid{1}, .last = Fid{2}};
    std::array<std::byte, 24> bytes;
    encode_request(1, std::span{&range, 1}, bytes);
    ASSERT_TRUE(decode_request(bytes));
    EXPECT_EQ(decode_request(bytes)->policy, std::nullopt);
    for (const auto policy :
         {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect, SlowPolicy::newest}) {
        encode_request(1, std::span{&range, 1}, bytes, policy);
        ASSERT_TRUE(decode_request(bytes));
        EXPECT_EQ(decode_request(bytes)->policy, policy);
    }
    bytes[4] = std::byte{5};
    EXPECT_FALSE(decode_request(bytes));
}

TEST(PubsubFrames, RefusesARequestWithPartOfARange) {
    std::array<std::byte, 64> bytes{};
    const FidRange range{.first = Fid{1}, .last = Fid{2}};
    const std::size_t size = encode_request(1, std::span{&range, 1}, bytes);
    EXPECT_TRUE(decode_request(std::span{bytes}.first(size)));
    for (std::size_t more = 1; more < range_bytes; ++more)
        EXPECT_FALSE(decode_request(std::span{bytes}.first(size + more))) << more;
}

TEST(PubsubFrames, RefusesARequestForNothingOrBackwards) {
    std::array<std::byte, 64> bytes;
    EXPECT_FALSE(decode_request(std::span{bytes}.first(encode_request(1, {}, bytes))));
    const FidRange backwards{.first = Fid{2}, .last = Fid{1}};
    const std::size_t size = encode_request(1, std::span{&backwards, 1}, bytes);
    EXPECT_FALSE(decode_request(std::span{bytes}.first(size)));
}

TEST(PubsubFrames, AnswerComesBackAndUnknownResultsAreRefused) {
    std::array<std::byte, answer_bytes> bytes;
    encode(SubscriptionAnswer{.request = 3, .result = SubscriptionResult::table_full}, bytes);
    const auto decoded = decode_answer(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->request, 3U);
    EXPECT_EQ(decoded->result, SubscriptionResult::table_full);
    bytes[4] = std::byte{3};
    EXPECT_EQ(decode_answer(bytes)->result, SubscriptionResult::not_permitted);
    bytes[4] = std::byte{4};
    EXPECT_FALSE(decode_answer(bytes));
}

TEST(PubsubFrames, QuestionsAboutFidsComeBackWithinTheirLimits) {
    std::array<std::byte, fids_question_bytes> bytes{};
    for (const std::uint32_t limit : {0U, 1U, fids_answer_limit, fids_answer_limit + 1}) {
        encode(FidsQuestion{.from = Fid{5}, .limit = limit, .number = 9}, bytes);
        const auto decoded = decode_fids_question(bytes);
        ASSERT_EQ(decoded.has_value(), limit >= 1 && limit <= fids_answer_limit) << limit;
        if (!decoded) continue;
        EXPECT_EQ(decoded->from, Fid{5});
        EXPECT_EQ(decoded->limit, limit);
        EXPECT_EQ(decoded->number, 9U);
    }
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        EXPECT_FALSE(decode_fids_question(std::span{bytes}.first(cut)));
}

TEST(PubsubFrames, AnswersAboutFidsAscend) {
    std::array<std::byte, 40> bytes{};
    const auto answer_of = [&](const std::array<FidCount, 2>& ranges) {
        encode_fids_answer(7, bytes);
        encode(ranges, std::span{bytes}.subspan(fids_answer_extension_bytes));
        return decode_fids_answer(bytes);
    };
    const auto good = answer_of({FidCount{Fid{1}, 2}, FidCount{Fid{3}, UINT64_MAX}});
    ASSERT_TRUE(good);
    EXPECT_EQ(good->number, 7U);
    EXPECT_THAT(good->ranges,
                ElementsAre(FidRange{Fid{1}, Fid{2}}, FidRange{Fid{3}, Fid{UINT64_MAX}}));
    EXPECT_FALSE(answer_of({FidCount{Fid{1}, 3}, FidCount{Fid{3}, 4}})) << "they overlap";
    EXPECT_FALSE(answer_of({FidCount{Fid{2}, 1}, FidCount{Fid{3}, 4}})) << "backwards";
    for (std::size_t cut = 0; cut <= 40; ++cut) {
        encode_fids_answer(7, bytes);
        encode(std::array{FidCount{Fid{1}, 2}, FidCount{Fid{3}, 4}},
               std::span{bytes}.subspan(fids_answer_extension_bytes));
        EXPECT_EQ(decode_fids_answer(std::span{bytes}.first(cut)).has_value(),
                  cut == 8 || cut == 24 || cut == 40);
    }
    bytes[4] = std::byte{1};
    EXPECT_FALSE(decode_fids_answer(bytes)) << "reserved";
}

TEST(PubsubFrames, CountsComeBack) {
    const std::array<FidCount, 2> counts{FidCount{.fid = Fid{1}, .count = 2},
                                         FidCount{.fid = Fid{3}, .count = UINT64_MAX}};
    std::array<std::byte, 32> bytes;
    EXPECT_EQ(encode(counts, bytes), 32U);
    const auto decoded = decode_counts(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_THAT(*decoded, ElementsAre(counts[0], counts[1]));
    const auto none = decode_counts({});
    ASSERT_TRUE(none);
    EXPECT_THAT(*none, IsEmpty());
}

TEST(PubsubFrames, EveryTruncationIsRefused) {
    std::array<std::byte, 64> bytes{};
    encode(MessageExtension{.fid = Fid{1}, .status = 1}, bytes);
    for (std::size_t cut = 0; cut < message_extension_bytes; ++cut)
        EXPECT_FALSE(decode_message(std::span{bytes}.first(cut)));
    encode(FragmentExtension{.fid = Fid{1}, .total = 1}, bytes);
    for (std::size_t cut = 0; cut < fragment_extension_bytes; ++cut)
        EXPECT_FALSE(decode_fragment(std::span{bytes}.first(cut)));
    const FidRange range{.first = Fid{1}, .last = Fid{2}};
    const std::size_t size = encode_request(1, std::span{&range, 1}, bytes);
    for (std::size_t cut = 0; cut < size; ++cut)
        EXPECT_FALSE(decode_request(std::span{bytes}.first(cut)));
    encode(SubscriptionAnswer{}, bytes);
    for (std::size_t cut = 0; cut <= size; ++cut)
        EXPECT_EQ(decode_answer(std::span{bytes}.first(cut)).has_value(), cut == answer_bytes);
    for (std::size_t cut = 0; cut <= 48; ++cut)
        EXPECT_EQ(decode_counts(std::span{bytes}.first(cut)).has_value(), cut % 16 == 0);
}

TEST(PubsubFrames, ReservedBytesMustBeZero) {
    std::array<std::byte, 64> bytes{};
    encode(MessageExtension{.fid = Fid{1}, .status = 255}, bytes);
    for (std::size_t at = 9; at < 16; ++at) {
        bytes[at] = std::byte{1};
        EXPECT_FALSE(decode_message(bytes)) << at;
        bytes[at] = std::byte{0};
    }
    encode(FragmentExtension{.fid = Fid{1}, .total = 1, .status = 255}, bytes);
    for (std::size_t at = 21; at < 24; ++at) {
        bytes[at] = std::byte{1};
        EXPECT_FALSE(decode_fragment(bytes)) << at;
        bytes[at] = std::byte{0};
    }
    const FidRange range{.first = Fid{1}, .last = Fid{2}};
    const std::size_t size = encode_request(1, std::span{&range, 1}, bytes);
    for (std::size_t at = 5; at < 8; ++at) {
        bytes[at] = std::byte{1};
        EXPECT_FALSE(decode_request(std::span{bytes}.first(size))) << at;
        bytes[at] = std::byte{0};
    }
}

} // namespace
} // namespace netio::pubsub
