// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace apps::copy {
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
    EXPECT_EQ(flaw_with(6, 7), Flaw::unknown_kind);
    EXPECT_EQ(flaw_with(8, 0), Flaw::bad_length);
    EXPECT_EQ(flaw_with(10, 1), Flaw::bad_length) << "65544 bytes";
    EXPECT_EQ(flaw_with(12, 1), Flaw::bad_value);
    EXPECT_EQ(flaw_with(4, 1), Flaw::none) << "as it was";
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

    Answer answer = some_answer;
    Answer out;
    answer.outcome = Answer::Outcome{0};
    EXPECT_EQ(read(encode(answer), Kind::answer, out), Flaw::bad_value);
    answer = some_answer;
    answer.offset_bytes = size_limit_bytes + 1;
    EXPECT_EQ(read(encode(answer), Kind::answer, out), Flaw::bad_value);
}

// What a decoder lets pass means the same when it is written again.
TEST(CopyProtocol, DecodersTakeAnything) {
    std::mt19937 random{1};
    const std::vector<Message> seeds = {encode(some_open), encode(some_answer), encode(Start{}),
                                        encode(End{.digest = some_digest()}),
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
        check(body, Verdict{});
    }
}

} // namespace
} // namespace apps::copy
