// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/copy_protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace apps {
namespace {

Digest some_digest() {
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::byte>(i + 1);
    return digest;
}

const CopyOpen some_open{.name = "folder/name",
                         .size_bytes = 123'456'789'012,
                         .modified_ns = -5,
                         .mode = 0640,
                         .checksum = ChecksumKind::sha256,
                         .overwrite = true};
const CopyAnswer some_answer{.outcome = CopyAnswer::Outcome::accepted,
                             .offset_bytes = 77,
                             .digest = some_digest(),
                             .text = "text"};

template <typename Message>
CopyFlaw read(const CopyMessage& message, CopyKind kind, Message& out) {
    CopyPrelude prelude;
    const std::span<const std::byte> bytes{message};
    const CopyFlaw flaw = decode(bytes.first(copy_prelude_bytes), prelude);
    if (flaw != CopyFlaw::none) return flaw;
    EXPECT_EQ(prelude.kind, kind);
    EXPECT_EQ(prelude.body_bytes, message.size() - copy_prelude_bytes);
    return decode(bytes.subspan(copy_prelude_bytes), out);
}

template <typename Message>
void expect_survives(const Message& message, CopyKind kind) {
    Message out;
    EXPECT_EQ(read(encode(message), kind, out), CopyFlaw::none);
    EXPECT_EQ(out, message);
}

TEST(CopyProtocol, MessagesComeOutAsTheyWentIn) {
    expect_survives(some_open, CopyKind::open);
    expect_survives(some_answer, CopyKind::answer);
    expect_survives(CopyStart{.offset_bytes = 1}, CopyKind::start);
    expect_survives(CopyEnd{.digest = some_digest()}, CopyKind::end);
    expect_survives(CopyVerdict{.kept = true, .text = {}}, CopyKind::verdict);
    expect_survives(CopyVerdict{.kept = false, .text = "why"}, CopyKind::verdict);

    const CopyChunk chunk{.position = 5, .bytes = 1 << 20, .digest = chunk_digest({})};
    std::array<std::byte, copy_chunk_header_bytes> header{};
    encode(chunk, header);
    CopyChunk out;
    EXPECT_EQ(decode(header, out), CopyFlaw::none);
    EXPECT_EQ(out, chunk);
}

TEST(CopyProtocol, TheBytesOfAStartMessageAreThese) {
    const CopyMessage message = encode(CopyStart{.offset_bytes = 0x0102});
    const unsigned char expected[] = {'N', 'C', 'P', 'Y', 1,    0,    3, 0, 8, 0, 0, 0,
                                      0,   0,   0,   0,   0x02, 0x01, 0, 0, 0, 0, 0, 0};
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span{expected}), message));
}

TEST(CopyProtocol, LongTextsAreCut) {
    CopyVerdict out;
    const CopyVerdict verdict{.kept = false, .text = std::string(5000, 'x')};
    ASSERT_EQ(read(encode(verdict), CopyKind::verdict, out), CopyFlaw::none);
    EXPECT_EQ(out.text, std::string(copy_text_limit_bytes, 'x'));
}

TEST(CopyProtocol, ThePreludeOfAnotherProtocolOrVersionIsRefused) {
    const CopyMessage good = encode(CopyStart{});
    const auto flaw_with = [&](std::size_t position, int value) {
        CopyMessage bad = good;
        bad[position] = static_cast<std::byte>(value);
        CopyPrelude out;
        return decode(std::span{bad}.first(copy_prelude_bytes), out);
    };
    EXPECT_EQ(flaw_with(0, 'X'), CopyFlaw::no_copy_protocol);
    EXPECT_EQ(flaw_with(4, 2), CopyFlaw::other_version);
    EXPECT_EQ(flaw_with(6, 0), CopyFlaw::unknown_kind);
    EXPECT_EQ(flaw_with(6, 6), CopyFlaw::unknown_kind);
    EXPECT_EQ(flaw_with(8, 0), CopyFlaw::bad_length);
    EXPECT_EQ(flaw_with(10, 1), CopyFlaw::bad_length) << "65544 bytes";
    EXPECT_EQ(flaw_with(12, 1), CopyFlaw::bad_value);
    EXPECT_EQ(flaw_with(4, 1), CopyFlaw::none) << "as it was";
}

template <typename Message>
void expect_every_other_length_refused(const Message& message) {
    CopyMessage bytes = encode(message);
    const std::size_t size = bytes.size() - copy_prelude_bytes;
    bytes.resize(bytes.size() + 1);
    const std::span<const std::byte> body = std::span{bytes}.subspan(copy_prelude_bytes);
    for (std::size_t length = 0; length <= size + 1; ++length) {
        Message out;
        EXPECT_EQ(decode(body.first(length), out),
                  length == size ? CopyFlaw::none : CopyFlaw::bad_length)
            << length;
    }
}

TEST(CopyProtocol, BodiesOfAWrongLengthAreRefused) {
    expect_every_other_length_refused(some_open);
    expect_every_other_length_refused(some_answer);
    expect_every_other_length_refused(CopyStart{});
    expect_every_other_length_refused(CopyEnd{});
    expect_every_other_length_refused(CopyVerdict{.kept = false, .text = "why"});
}

TEST(CopyProtocol, ValuesThatCannotBeAreRefused) {
    const auto flaw_of = [](CopyOpen open) {
        CopyOpen out;
        return read(encode(open), CopyKind::open, out);
    };
    CopyOpen open = some_open;
    open.mode = 01000;
    EXPECT_EQ(flaw_of(open), CopyFlaw::bad_value);
    open = some_open;
    open.size_bytes = copy_size_limit_bytes + 1;
    EXPECT_EQ(flaw_of(open), CopyFlaw::bad_value);
    open = some_open;
    open.checksum = ChecksumKind{3};
    EXPECT_EQ(flaw_of(open), CopyFlaw::bad_value);

    CopyAnswer answer = some_answer;
    CopyAnswer out;
    answer.outcome = CopyAnswer::Outcome{0};
    EXPECT_EQ(read(encode(answer), CopyKind::answer, out), CopyFlaw::bad_value);
    answer = some_answer;
    answer.offset_bytes = copy_size_limit_bytes + 1;
    EXPECT_EQ(read(encode(answer), CopyKind::answer, out), CopyFlaw::bad_value);
}

// What a decoder lets pass means the same when it is written again.
TEST(CopyProtocol, DecodersTakeAnything) {
    std::mt19937 random{1};
    const std::vector<CopyMessage> seeds = {
        encode(some_open), encode(some_answer), encode(CopyStart{}),
        encode(CopyEnd{.digest = some_digest()}), encode(CopyVerdict{.kept = true, .text = "x"})};
    const auto check = [](std::span<const std::byte> body, auto out) {
        if (decode(body, out) != CopyFlaw::none) return;
        auto again = out;
        const CopyMessage message = encode(out);
        EXPECT_EQ(decode(std::span{message}.subspan(copy_prelude_bytes), again), CopyFlaw::none);
        EXPECT_EQ(again, out);
    };
    for (int run = 0; run < 100'000; ++run) {
        CopyMessage message = seeds[random() % seeds.size()];
        for (auto changes = random() % 4; changes > 0; --changes)
            message[random() % message.size()] = static_cast<std::byte>(random());
        message.resize(copy_prelude_bytes + random() % (message.size() - copy_prelude_bytes + 2));
        const std::span<const std::byte> bytes{message};
        CopyPrelude prelude;
        if (decode(bytes.first(copy_prelude_bytes), prelude) == CopyFlaw::none) {
            EXPECT_LE(prelude.body_bytes, copy_body_limit_bytes);
        }
        const auto body = bytes.subspan(copy_prelude_bytes);
        check(body, CopyOpen{});
        check(body, CopyAnswer{});
        check(body, CopyStart{});
        check(body, CopyEnd{});
        check(body, CopyVerdict{});
    }
}

} // namespace
} // namespace apps
