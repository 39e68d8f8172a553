// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/wire.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace netio::pubsub::wire_test {
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
    ASSERT_TRUE(decoded) << "without a list after it";
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

// A request for fid 1 with this list of options.
std::vector<std::byte> request_with(const std::vector<unsigned>& options) {
    std::vector<std::byte> bytes(request_header_bytes + options.size() + range_bytes);
    const FidRange range{.first = Fid{1}, .last = Fid{1}};
    encode_request(9, std::span{&range, 1}, bytes);
    const auto list = bytes.begin() + request_header_bytes;
    std::rotate(list, list + range_bytes, bytes.end());
    std::ranges::transform(options, list,
                           [](unsigned byte) { return static_cast<std::byte>(byte); });
    bytes[6] = static_cast<std::byte>(options.size());
    return bytes;
}

TEST(PubsubFrames, ARequestMayHaveOptionsOfALaterVersion) {
    const auto optional = decode_request(request_with({7, 0, 2, 0, 1, 1, 8, 0, 0, 0}));
    ASSERT_TRUE(optional);
    EXPECT_EQ(optional->unknown_option, 0U) << "ignored";
    EXPECT_THAT(optional->ranges, ElementsAre(FidRange{.first = Fid{1}, .last = Fid{1}}));
    const auto mandatory = decode_request(request_with({7, 0, 0, 0, 5, 0x80, 1, 0, 1}));
    ASSERT_TRUE(mandatory);
    EXPECT_EQ(mandatory->unknown_option, 0x8005U);
    EXPECT_FALSE(decode_request(request_with({7, 0, 3, 0, 1, 1}))) << "longer than the list";
    EXPECT_FALSE(decode_request(request_with({7, 0, 0}))) << "no whole header";
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
    EXPECT_EQ(decode_answer(bytes)->result, SubscriptionResult::unknown_option);
    bytes[4] = std::byte{5};
    EXPECT_FALSE(decode_answer(bytes));
}

TEST(PubsubFrames, TheMeaningOfTimeStampsComesBackWithTheAnswer) {
    std::array<std::byte, answer_bytes + 8> bytes;
    for (const StampFormat format : {StampFormat{.clock = StampClock::tai, .utc_offset_s = 37},
                                     StampFormat{.clock = StampClock::own},
                                     StampFormat{.clock = StampClock::tai, .utc_offset_s = -1}}) {
        ASSERT_EQ(encode(SubscriptionAnswer{.request = 3, .stamps = format}, bytes), bytes.size());
        const auto decoded = decode_answer(bytes);
        ASSERT_TRUE(decoded);
        EXPECT_EQ(decoded->request, 3U);
        EXPECT_EQ(decoded->stamps, format);
    }
    for (const int clock : {0, 3, 255}) {
        bytes[12] = static_cast<std::byte>(clock);
        EXPECT_FALSE(decode_answer(bytes)) << clock;
    }
    bytes[12] = std::byte{2};
    bytes[13] = std::byte{1};
    EXPECT_FALSE(decode_answer(bytes)) << "a reserved byte";
    bytes[13] = std::byte{0};
    EXPECT_TRUE(decode_answer(bytes));
    bytes[8] = std::byte{9};
    EXPECT_FALSE(decode_answer(bytes)) << "an unknown mandatory option";
}

TEST(PubsubFrames, ARequestForHistoryAndItsAnswerComeBack) {
    std::array<std::byte, 64> bytes{};
    const FidRange range{.first = Fid{1}, .last = Fid{2}};
    for (const HistoryWish wish : {HistoryWish{}, HistoryWish{0}, HistoryWish{UINT64_MAX}}) {
        const std::size_t size =
            encode_request(9, std::span{&range, 1}, bytes, SlowPolicy::drop, wish);
        ASSERT_EQ(size, request_bytes(1, wish));
        const auto decoded = decode_request(std::span{bytes}.first(size));
        ASSERT_TRUE(decoded);
        EXPECT_EQ(decoded->history, wish);
        EXPECT_EQ(decoded->policy, SlowPolicy::drop);
        EXPECT_THAT(decoded->ranges, ElementsAre(range));
        EXPECT_EQ(decoded->unknown_option, 0U);
    }
    EXPECT_FALSE(decode_request(request_with({1, 0, 4, 0, 1, 1, 1, 1}))) << "half of a value";
    for (const StampFormat format : {StampFormat{}, StampFormat{.clock = StampClock::own}}) {
        const std::size_t size = encode(
            SubscriptionAnswer{.request = 3, .stamps = format, .keeps_history = true}, bytes);
        ASSERT_LE(size, answer_limit_bytes);
        const auto decoded = decode_answer(std::span{bytes}.first(size));
        ASSERT_TRUE(decoded);
        EXPECT_TRUE(decoded->keeps_history);
        EXPECT_EQ(decoded->stamps, format);
    }
    bytes[10] = std::byte{1};
    EXPECT_FALSE(decode_answer(std::span{bytes}.first(13))) << "with a value";
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
    std::ranges::fill(std::span{bytes}.subspan(answer_bytes), std::byte{0}); // unknown options
    for (std::size_t cut = 0; cut <= size; ++cut)
        EXPECT_EQ(decode_answer(std::span{bytes}.first(cut)).has_value(),
                  cut >= answer_bytes && (cut - answer_bytes) % 4 == 0);
    const std::size_t stamped =
        encode(SubscriptionAnswer{.stamps = {.clock = StampClock::own}}, bytes);
    for (std::size_t cut = answer_bytes + 1; cut < stamped; ++cut)
        EXPECT_FALSE(decode_answer(std::span{bytes}.first(cut)));
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
    bytes[5] = std::byte{1};
    EXPECT_FALSE(decode_request(std::span{bytes}.first(size)));
}

struct Message {
    Fid fid{};
    std::uint8_t status = 0;
    std::vector<std::byte> bytes;

    friend bool operator==(const Message&, const Message&) = default;
};

struct Read {
    std::vector<Message> messages;
    bool sound = false;
};

Read read(std::span<const std::byte> page) {
    Read read;
    read.sound =
        visit_page(page, [&](Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
            read.messages.push_back(
                {.fid = fid, .status = status, .bytes = {bytes.begin(), bytes.end()}});
            return true;
        });
    return read;
}

bool write(PageWriter& writer, const Message& message) {
    std::byte* out = writer.append(message.fid, message.status, message.bytes.size());
    if (out != nullptr) std::ranges::copy(message.bytes, out);
    return out != nullptr;
}

Message message(std::uint64_t fid, std::uint8_t status, std::size_t size) {
    Message made{.fid = Fid{fid}, .status = status, .bytes = std::vector<std::byte>(size)};
    for (std::size_t i = 0; i < size; ++i)
        made.bytes[i] = static_cast<std::byte>(fid + i);
    return made;
}

TEST(Page, HasTheBytesThatNetio3Documents) {
    std::array<std::byte, 64> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(
        write(writer, {.fid = Fid{0x1122334455667788}, .status = 0, .bytes = {std::byte{0xaa}}}));
    ASSERT_TRUE(write(writer, {.fid = Fid{0x1122334455667788}, .status = 5, .bytes = {}}));
    const std::vector<int> expected{0x01, 0,    0,    0x80,                               //
                                    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xaa, //
                                    0x00, 0,    0,    0x40, 0x05};
    ASSERT_EQ(writer.used(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(memory[i]), expected[i]) << "byte " << i;
}

TEST(Page, RefusesWhatDoesNotFitAndStaysAsItWas) {
    std::array<std::byte, 32> memory{};
    PageWriter writer{memory};
    EXPECT_EQ(writer.append(Fid{1}, 0, 21), nullptr); // 12 + 21 > 32
    EXPECT_EQ(writer.used(), 0U);
    EXPECT_NE(writer.append(Fid{1}, 0, 20), nullptr);
    EXPECT_EQ(writer.used(), 32U);
    EXPECT_EQ(writer.append(Fid{1}, 0, 0), nullptr);
    EXPECT_EQ(writer.messages(), 1U);
}

TEST(Page, AMessageWithFidAndStatusNeedsTheDocumentedHeader) {
    std::array<std::byte, page::header_bytes + 5> memory{};
    PageWriter writer{memory};
    EXPECT_NE(writer.append(Fid{1}, 7, 5), nullptr);
    EXPECT_EQ(writer.used(), memory.size());
}

// Fid 0 is also the initial value of the writer.
TEST(Page, TheFirstMessageOfFidZeroContainsItsFid) {
    std::array<std::byte, 32> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(write(writer, message(0, 0, 3)));
    const Read whole = read(std::span{memory}.first(writer.used()));
    EXPECT_TRUE(whole.sound);
    EXPECT_EQ(whole.messages, std::vector{message(0, 0, 3)});
}

TEST(Page, AnEmptyPageHasNoMessages) {
    EXPECT_TRUE(read({}).sound);
    EXPECT_TRUE(read({}).messages.empty());
}

// Every combination of three messages from 2 fids, 2 statuses and 4 sizes, in pages of every size:
// accepted messages are read back, and every truncation is detected or is between two messages.
TEST(Page, ReturnsWhatWasWrittenForAllSmallPages) {
    const std::size_t sizes[] = {0, 1, 8, 13};
    constexpr unsigned kinds = 2 * 2 * 4;
    const auto kind = [&](unsigned k) {
        return message(k % 2 + 1, static_cast<std::uint8_t>(k / 2 % 2 * 7), sizes[k / 4]);
    };
    for (unsigned combination = 0; combination < kinds * kinds * kinds; ++combination) {
        const std::vector<Message> wanted{kind(combination % kinds),
                                          kind(combination / kinds % kinds),
                                          kind(combination / kinds / kinds)};
        for (const std::size_t page_bytes : {12U, 26U, 52U, 78U}) {
            std::vector<std::byte> memory(page_bytes);
            PageWriter writer{memory};
            std::vector<Message> accepted;
            std::vector<std::size_t> ends{0};
            for (const Message& each : wanted) {
                if (!write(writer, each)) continue;
                accepted.push_back(each);
                ends.push_back(writer.used());
            }
            const std::span<const std::byte> page{memory.data(), writer.used()};
            const Read whole = read(page);
            ASSERT_TRUE(whole.sound);
            ASSERT_EQ(whole.messages, accepted);
            ASSERT_EQ(writer.messages(), accepted.size());
            for (std::size_t cut = 0; cut < page.size(); ++cut) {
                const Read part = read(page.first(cut));
                const bool between = std::ranges::find(ends, cut) != ends.end();
                ASSERT_EQ(part.sound, between) << "cut at " << cut;
                ASSERT_LE(part.messages.size(), accepted.size());
                ASSERT_TRUE(std::ranges::equal(part.messages,
                                               std::span{accepted}.first(part.messages.size())));
            }
        }
    }
}

TEST(Page, RefusesAFirstMessageWithoutFid) {
    std::array<std::byte, 4> page{};
    EXPECT_FALSE(read(page).sound);
}

TEST(Page, StopsWhenTheVisitorReturnsFalse) {
    std::array<std::byte, 64> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(write(writer, message(1, 0, 3)));
    ASSERT_TRUE(write(writer, message(2, 0, 3)));
    int visits = 0;
    EXPECT_TRUE(visit_page(std::span{memory}.first(writer.used()),
                           [&](Fid, std::span<const std::byte>, std::uint8_t) {
                               ++visits;
                               return false;
                           }));
    EXPECT_EQ(visits, 1);
}

// With random bytes, the reader never reads outside the page (checked by sanitizers) and always
// ends.
TEST(Page, SurvivesRandomBytes) {
    std::mt19937_64 random{3};
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> page(random() % 64);
        for (std::byte& byte : page)
            byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 4));
        std::size_t seen = 0;
        visit_page(page, [&](Fid, std::span<const std::byte> bytes, std::uint8_t) {
            seen += bytes.size() + 4;
            return true;
        });
        ASSERT_LE(seen, page.size());
    }
}

TEST(Page, APageThatIsResizedKeepsWhatItHas) {
    std::vector<std::byte> memory(100);
    PageWriter writer{memory};
    EXPECT_NE(writer.append(Fid{1}, 0, 20), nullptr);
    writer.resize(10);
    EXPECT_EQ(writer.append(Fid{1}, 0, 0), nullptr);
    EXPECT_EQ(writer.used(), 32U);
    writer.resize(36);
    EXPECT_NE(writer.append(Fid{1}, 0, 0), nullptr);
}

using Outcome = Reassembly::Outcome;

std::vector<std::byte> bytes_of(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i * 7 + 1);
    return bytes;
}

FragmentExtension fragment(std::uint32_t number, std::size_t offset, std::size_t total) {
    return {.fid = Fid{9},
            .message_number = number,
            .offset = static_cast<std::uint32_t>(offset),
            .total = static_cast<std::uint32_t>(total),
            .status = 3};
}

TEST(Reassembly, RefusesWhatIsLargerThanAgreed) {
    Reassembly reassembly{8};
    EXPECT_EQ(reassembly.take(fragment(1, 0, 9), bytes_of(4)), Outcome::too_large);
}

TEST(Reassembly, RefusesWhatDoesNotFollow) {
    const auto second_after_half = [](const FragmentExtension& second, std::size_t size) {
        Reassembly reassembly{100};
        EXPECT_EQ(reassembly.take(fragment(1, 0, 8), bytes_of(4)), Outcome::incomplete);
        return reassembly.take(second, bytes_of(size));
    };
    EXPECT_EQ(second_after_half(fragment(1, 4, 8), 4), Outcome::complete);
    EXPECT_EQ(second_after_half(fragment(1, 4, 8), 5), Outcome::out_of_order); // too long
    EXPECT_EQ(second_after_half(fragment(1, 4, 8), 0), Outcome::out_of_order); // empty
    EXPECT_EQ(second_after_half(fragment(1, 3, 8), 4), Outcome::out_of_order);
    EXPECT_EQ(second_after_half(fragment(1, 5, 8), 3), Outcome::out_of_order);
    EXPECT_EQ(second_after_half(fragment(2, 4, 8), 4), Outcome::out_of_order);
    EXPECT_EQ(second_after_half(fragment(1, 4, 9), 4), Outcome::out_of_order);
    FragmentExtension other_fid = fragment(1, 4, 8);
    other_fid.fid = Fid{8};
    EXPECT_EQ(second_after_half(other_fid, 4), Outcome::out_of_order);
    FragmentExtension other_status = fragment(1, 4, 8);
    other_status.status = 0;
    EXPECT_EQ(second_after_half(other_status, 4), Outcome::out_of_order);
}

TEST(Reassembly, TakesTheNextMessageForAnother) {
    Reassembly reassembly{100};
    EXPECT_EQ(reassembly.take(fragment(1, 0, 2), bytes_of(2)), Outcome::complete);
    const std::vector<std::byte> second = bytes_of(3);
    EXPECT_EQ(reassembly.take(fragment(2, 0, 3), second), Outcome::complete);
    EXPECT_THAT(reassembly.message(), testing::ElementsAreArray(second));
}

TEST(Reassembly, ForgetsWhatIsAbandoned) {
    Reassembly reassembly{100};
    EXPECT_EQ(reassembly.take(fragment(1, 0, 8), bytes_of(4)), Outcome::incomplete);
    reassembly.abandon();
    EXPECT_FALSE(reassembly.in_progress());
    EXPECT_EQ(reassembly.take(fragment(2, 0, 2), bytes_of(2)), Outcome::complete);
}

} // namespace
} // namespace netio::pubsub::wire_test
