// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace apps::copy::protocol_test {
namespace {

Digest some_digest() {
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::byte>(i + 1);
    return digest;
}

const Open some_open{.name = "folder/name",
                     .size_bytes = 123'456'789'012,
                     .modified_ns = -5,
                     .mode = 0640,
                     .checksum = ChecksumKind::sha256,
                     .overwrite = true};
const Answer some_answer{.outcome = Answer::Outcome::accepted,
                         .offset_bytes = 77,
                         .digest = some_digest(),
                         .text = "text"};

const Attributes some_attributes{.modified_s = -1, .modified_ns = 999'999'999, .mode = 0640};
const Extents some_extents{.all = {{.position = 0, .bytes = 7}, {.position = 7, .bytes = 1}}};

template <typename Body>
Flaw read(const Message& message, Kind kind, Body& out) {
    Prelude prelude;
    const std::span<const std::byte> bytes{message};
    const Flaw flaw = decode(bytes.first(prelude_bytes), prelude);
    if (flaw != Flaw::none) return flaw;
    EXPECT_EQ(prelude.kind, kind);
    EXPECT_EQ(prelude.body_bytes, message.size() - prelude_bytes);
    return decode(bytes.subspan(prelude_bytes), out);
}

template <typename Body>
void expect_survives(const Body& message, Kind kind) {
    Body out;
    EXPECT_EQ(read(encode(message), kind, out), Flaw::none);
    EXPECT_EQ(out, message);
}

TEST(CopyProtocol, MessagesComeOutAsTheyWentIn) {
    expect_survives(some_open, Kind::open);
    expect_survives(some_answer, Kind::answer);
    expect_survives(Start{.offset_bytes = 1}, Kind::start);
    expect_survives(Comparing{.position = std::uint64_t{1} << 40}, Kind::comparing);
    expect_survives(some_attributes, Kind::attributes);
    expect_survives(SparseStart{.offset_bytes = 4096, .data_bytes = 5}, Kind::sparse_start);
    expect_survives(some_extents, Kind::extents);
    expect_survives(Extents{.all = {{.position = 1 << 20, .bytes = 0}}}, Kind::extents);
    expect_survives(End{.digest = some_digest()}, Kind::end);
    expect_survives(Verdict{.kept = true, .text = {}}, Kind::verdict);
    expect_survives(Verdict{.kept = false, .text = "why"}, Kind::verdict);

    const Chunk chunk{.position = 5, .bytes = 1 << 20, .digest = chunk_digest({})};
    std::array<std::byte, chunk_header_bytes> header{};
    encode(chunk, header);
    Chunk out;
    EXPECT_EQ(decode(header, out), Flaw::none);
    EXPECT_EQ(out, chunk);
}

TEST(CopyProtocol, TheBytesOfAStartMessageAreThese) {
    const Message message = encode(Start{.offset_bytes = 0x0102});
    const unsigned char expected[] = {'N', 'C', 'P', 'Y', 1,    0,    3, 0, 8, 0, 0, 0,
                                      0,   0,   0,   0,   0x02, 0x01, 0, 0, 0, 0, 0, 0};
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span{expected}), message));
}

TEST(CopyProtocol, LongTextsAreCut) {
    Verdict out;
    const Verdict verdict{.kept = false, .text = std::string(5000, 'x')};
    ASSERT_EQ(read(encode(verdict), Kind::verdict, out), Flaw::none);
    EXPECT_EQ(out.text, std::string(text_limit_bytes, 'x'));
}

TEST(CopyProtocol, ThePreludeOfAnotherProtocolOrVersionIsRefused) {
    const Message good = encode(Start{});
    const auto flaw_with = [&](std::size_t position, int value) {
        Message bad = good;
        bad[position] = static_cast<std::byte>(value);
        Prelude out;
        return decode(std::span{bad}.first(prelude_bytes), out);
    };
    EXPECT_EQ(flaw_with(0, 'X'), Flaw::no_copy_protocol);
    EXPECT_EQ(flaw_with(4, 2), Flaw::other_version);
    EXPECT_EQ(flaw_with(6, 0), Flaw::unknown_kind);
    EXPECT_EQ(flaw_with(6, 10), Flaw::unknown_kind);
    EXPECT_EQ(flaw_with(8, 0), Flaw::bad_length);
    EXPECT_EQ(flaw_with(10, 1), Flaw::bad_length) << "65544 bytes";
    EXPECT_EQ(flaw_with(12, 1), Flaw::bad_value);
    EXPECT_EQ(flaw_with(4, 1), Flaw::none) << "unchanged";
}

template <typename Body>
void expect_every_other_length_refused(const Body& message) {
    Message bytes = encode(message);
    const std::size_t size = bytes.size() - prelude_bytes;
    bytes.resize(bytes.size() + 1);
    const std::span<const std::byte> body = std::span{bytes}.subspan(prelude_bytes);
    for (std::size_t length = 0; length <= size + 1; ++length) {
        Body out;
        EXPECT_EQ(decode(body.first(length), out), length == size ? Flaw::none : Flaw::bad_length)
            << length;
    }
}

TEST(CopyProtocol, BodiesOfAWrongLengthAreRefused) {
    expect_every_other_length_refused(some_open);
    expect_every_other_length_refused(some_answer);
    expect_every_other_length_refused(Start{});
    expect_every_other_length_refused(Comparing{});
    expect_every_other_length_refused(some_attributes);
    expect_every_other_length_refused(SparseStart{});
    expect_every_other_length_refused(Extents{.all = {{.position = 1, .bytes = 1}}});
    expect_every_other_length_refused(End{});
    expect_every_other_length_refused(Verdict{.kept = false, .text = "why"});
}

TEST(CopyProtocol, ValuesThatCannotBeAreRefused) {
    const auto flaw_of = [](const Open& open) {
        Open out;
        return read(encode(open), Kind::open, out);
    };
    Open open = some_open;
    open.mode = 01000;
    EXPECT_EQ(flaw_of(open), Flaw::bad_value);
    open = some_open;
    open.size_bytes = size_limit_bytes + 1;
    EXPECT_EQ(flaw_of(open), Flaw::bad_value);
    open = some_open;
    open.checksum = ChecksumKind{3};
    EXPECT_EQ(flaw_of(open), Flaw::bad_value);

    Attributes attributes = some_attributes;
    Attributes attributes_out;
    attributes.mode = 04755; // no set-user-id bit
    EXPECT_EQ(read(encode(attributes), Kind::attributes, attributes_out), Flaw::bad_value);
    attributes = some_attributes;
    attributes.modified_ns = 1'000'000'000;
    EXPECT_EQ(read(encode(attributes), Kind::attributes, attributes_out), Flaw::bad_value);

    const auto flaw_of_extents = [](std::vector<Extent> all) {
        Extents extents_out;
        return read(encode(Extents{std::move(all)}), Kind::extents, extents_out);
    };
    EXPECT_EQ(flaw_of_extents({{.position = 5, .bytes = 2}, {.position = 6, .bytes = 1}}),
              Flaw::bad_value)
        << "overlapping";
    EXPECT_EQ(flaw_of_extents({{.position = 5, .bytes = 2}, {.position = 8, .bytes = 0}}),
              Flaw::bad_value)
        << "one of them is empty";
    EXPECT_EQ(flaw_of_extents({{.position = 1, .bytes = size_limit_bytes}}), Flaw::bad_value);
    EXPECT_EQ(flaw_of_extents({{.position = UINT64_MAX, .bytes = 2}}), Flaw::bad_value);

    Answer answer = some_answer;
    Answer out;
    answer.outcome = Answer::Outcome{0};
    EXPECT_EQ(read(encode(answer), Kind::answer, out), Flaw::bad_value);
    answer = some_answer;
    answer.offset_bytes = size_limit_bytes + 1;
    EXPECT_EQ(read(encode(answer), Kind::answer, out), Flaw::bad_value);
}

TEST(CopyProtocol, AnOfferIsWhatTheTextOfAnAnswerNames) {
    EXPECT_FALSE(offer_of("").comparing);
    const Offer earlier = offer_of("takes comparing");
    EXPECT_TRUE(earlier.comparing);
    EXPECT_FALSE(earlier.attributes || earlier.extents);
    const Offer all = offer_of(offer_text);
    EXPECT_TRUE(all.comparing && all.attributes && all.extents);
    const Offer later = offer_of("takes extents, what is new, attributes, ");
    EXPECT_TRUE(later.attributes && later.extents && !later.comparing);
}

TEST(CopyProtocol, ADateThatNanosecondsCannotCountIsTheNearest) {
    EXPECT_EQ(modified_ns_of({.modified_s = INT64_MAX, .modified_ns = 5}), INT64_MAX);
    EXPECT_EQ(modified_ns_of({.modified_s = INT64_MIN, .modified_ns = 5}), INT64_MIN);
    EXPECT_EQ(modified_ns_of({.modified_s = 13'569'465'600}), INT64_MAX) << "year 2400";
    for (const Attributes& each :
         {Attributes{.modified_s = -5, .modified_ns = 3}, Attributes{.modified_s = 1 << 30},
          Attributes{.modified_s = -1, .modified_ns = 999'999'999}}) {
        EXPECT_EQ(attributes_of({.modified_ns = modified_ns_of(each)}), each);
    }
}

// Encoding a decoded message gives a message with the same meaning.
TEST(CopyProtocol, DecodersTakeAnything) {
    std::mt19937 random{1};
    const std::vector<Message> seeds = {encode(some_open),
                                        encode(some_answer),
                                        encode(Start{}),
                                        encode(End{.digest = some_digest()}),
                                        encode(some_attributes),
                                        encode(some_extents),
                                        encode(SparseStart{.offset_bytes = 1}),
                                        encode(Verdict{.kept = true, .text = "x"})};
    const auto check = [](std::span<const std::byte> body, auto out) {
        if (decode(body, out) != Flaw::none) return;
        auto again = out;
        const Message message = encode(out);
        EXPECT_EQ(decode(std::span{message}.subspan(prelude_bytes), again), Flaw::none);
        EXPECT_EQ(again, out);
    };
    for (int run = 0; run < 100'000; ++run) {
        Message message = seeds[random() % seeds.size()];
        for (auto changes = random() % 4; changes > 0; --changes)
            message[random() % message.size()] = static_cast<std::byte>(random());
        message.resize(prelude_bytes + random() % (message.size() - prelude_bytes + 2));
        const std::span<const std::byte> bytes{message};
        Prelude prelude;
        if (decode(bytes.first(prelude_bytes), prelude) == Flaw::none) {
            EXPECT_LE(prelude.body_bytes, body_limit_bytes);
        }
        const auto body = bytes.subspan(prelude_bytes);
        check(body, Open{});
        check(body, Answer{});
        check(body, Start{});
        check(body, End{});
        check(body, Attributes{});
        check(body, SparseStart{});
        check(body, Extents{});
        check(body, Verdict{});
    }
}

} // namespace
} // namespace apps::copy::protocol_test
