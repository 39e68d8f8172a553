// SPDX-License-Identifier: Apache-2.0
#include "stream/core/wire.hpp"

#include "stream/core/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace netio::stream::wire_test {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<unsigned> values) {
    Bytes bytes;
    for (const unsigned value : values)
        bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

Bytes encoded(const ControlMessage& message) {
    Bytes bytes(control_limit_bytes);
    bytes.resize(encode_control(message, bytes));
    return bytes;
}

DecodeError decode(const Bytes& bytes) {
    ControlMessage message;
    return decode_control(bytes, message);
}

ControlMessage full_message() {
    ControlMessage message{.acknowledged_bytes = 0x0102030405060708,
                           .end_bytes = 9,
                           .closes = true,
                           .advert_count = 1};
    message.adverts[0] =
        Advert{.terms = {Sequence{0x1112131415161718}, Phase{0x21222324}, 0x31, true},
               .address = 0x41,
               .key = 0x51};
    return message;
}

// --- Immediate data ------------------------------------------------------------------------------

TEST(Immediate, HasTheKindInTheTopBitAndTheLengthBelow) {
    EXPECT_EQ(encode_immediate({TransferKind::direct, 1}), 0x00000001U);
    EXPECT_EQ(encode_immediate({TransferKind::indirect, 0x1234}), 0x80001234U);
    EXPECT_EQ(encode_immediate({TransferKind::indirect, transfer_limit_bytes}), 0x9FFFFFFFU);
    EXPECT_EQ(encode_immediate({TransferKind::indirect, 1, {.waited = true}}), 0xC0000001U);
    EXPECT_EQ(encode_immediate({TransferKind::indirect, 1, {.first = true}}), 0xA0000001U);
    EXPECT_EQ(encode_immediate({TransferKind::direct, 1, {.waited = true}}), 1U);
}

TEST(Immediate, SurvivesTheJourney) {
    for (const auto kind : {TransferKind::direct, TransferKind::indirect}) {
        for (const std::uint32_t bytes : {1U, 2U, 255U, 65'536U, transfer_limit_bytes}) {
            Immediate out;
            ASSERT_EQ(decode_immediate(encode_immediate({kind, bytes}), out), DecodeError::none);
            EXPECT_EQ(out, (Immediate{kind, bytes}));
        }
    }
    for (const RingNotice notice : {RingNotice{true, false}, {false, true}, {true, true}}) {
        const Immediate immediate{TransferKind::indirect, 7, notice};
        Immediate out;
        ASSERT_EQ(decode_immediate(encode_immediate(immediate), out), DecodeError::none);
        EXPECT_EQ(out, immediate);
    }
}

TEST(Immediate, RefusesEmptyTransfersAndRingBitsOfDirectOnes) {
    Immediate out;
    EXPECT_EQ(decode_immediate(0, out), DecodeError::bad_length); // R11
    EXPECT_EQ(decode_immediate(0x80000000U, out), DecodeError::bad_length);
    EXPECT_EQ(decode_immediate(0xE0000000U, out), DecodeError::bad_length);
    EXPECT_EQ(decode_immediate(0x40000001U, out), DecodeError::unknown_bits);
    EXPECT_EQ(decode_immediate(0x20000001U, out), DecodeError::unknown_bits);
}

TEST(ImmediateDeathTest, AbortsOnALengthThatDoesNotFit) {
    EXPECT_DEATH(encode_immediate({TransferKind::direct, 0}), "check failed");
    EXPECT_DEATH(encode_immediate({TransferKind::direct, 1U << 29}), "check failed");
}

// --- Control message -----------------------------------------------------------------------------

TEST(ControlCodec, HasTheDocumentedBytes) {
    const Bytes expected = bytes_of({
        7,    1,    0,    0,    0,    0,    0,    0,    // parts, adverts, 0
        8,    7,    6,    5,    4,    3,    2,    1,    // acknowledged
        9,    0,    0,    0,    0,    0,    0,    0,    // end
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, // sequence
        0x24, 0x23, 0x22, 0x21, 1,    0,    0,    0,    // phase, flags
        0x41, 0,    0,    0,    0,    0,    0,    0,    // address
        0x51, 0,    0,    0,    0,    0,    0,    0,    // key
        0x31, 0,    0,    0,    0,    0,    0,    0,    // bytes
    });
    EXPECT_EQ(encoded(full_message()), expected);
}

TEST(ControlCodec, AnyMessageSurvivesTheJourney) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        std::mt19937_64 random{seed};
        ControlMessage message;
        if (random() % 2 == 0) message.acknowledged_bytes = random();
        if (random() % 2 == 0) message.end_bytes = random();
        message.closes = message.end_bytes && random() % 2 == 0;
        message.advert_count = random() % (adverts_per_message + 1);
        for (std::size_t i = 0; i < message.advert_count; ++i) {
            message.adverts[i] = Advert{.terms = {Sequence{random()},
                                                  Phase{static_cast<std::uint32_t>(random()) & ~1U},
                                                  1 + random() % (1U << 31), random() % 2 == 0},
                                        .address = random(),
                                        .key = random()};
        }

        const Bytes bytes = encoded(message);
        ControlMessage out;
        out.acknowledged_bytes = 1; // the old content is gone
        ASSERT_EQ(decode_control(bytes, out), DecodeError::none) << "seed " << seed;

        EXPECT_EQ(bytes.size(), control_header_bytes + message.advert_count * advert_bytes);
        EXPECT_EQ(out.acknowledged_bytes, message.acknowledged_bytes) << "seed " << seed;
        EXPECT_EQ(out.end_bytes, message.end_bytes) << "seed " << seed;
        EXPECT_EQ(out.closes, message.closes) << "seed " << seed;
        ASSERT_EQ(out.advert_count, message.advert_count) << "seed " << seed;
        EXPECT_TRUE(
            std::equal(out.adverts.begin(), out.adverts.begin() + 32, message.adverts.begin(),
                       [i = std::size_t{0}, &out](const Advert& a, const Advert& b) mutable {
                           return i++ >= out.advert_count || a == b;
                       }))
            << "seed " << seed;
    }
}

TEST(ControlCodec, RefusesEveryOtherLength) {
    const Bytes whole = encoded(full_message());
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_EQ(decode(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))),
                  DecodeError::truncated)
            << length;
    }
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode(longer), DecodeError::trailing_bytes);
}

TEST(ControlCodec, RefusesEveryBitThatMustBeZero) {
    const Bytes whole = encoded(full_message());
    const auto with = [&](std::size_t at, unsigned value) {
        Bytes bytes = whole;
        bytes[at] = static_cast<std::byte>(value);
        return decode(bytes);
    };
    for (unsigned bit = 3; bit < 8; ++bit) {
        EXPECT_EQ(with(0, 3U | 1U << bit), DecodeError::unknown_bits) << bit;
    }
    EXPECT_EQ(with(0, 5), DecodeError::unknown_bits) << "a close without an end";
    EXPECT_EQ(with(0, 2), DecodeError::unknown_bits) << "a total whose bit is not set";
    EXPECT_EQ(with(0, 1), DecodeError::unknown_bits) << "a total whose bit is not set";
    EXPECT_EQ(with(1, 33), DecodeError::too_many_adverts);
    for (const std::size_t at : {2U, 3U, 4U, 5U, 6U, 7U})
        EXPECT_EQ(with(at, 1), DecodeError::unknown_bits);
    EXPECT_EQ(with(36, 2), DecodeError::unknown_bits);
    EXPECT_EQ(with(39, 0x80), DecodeError::unknown_bits);
    EXPECT_EQ(with(32, 0x25), DecodeError::bad_phase);
    EXPECT_EQ(with(56, 0), DecodeError::bad_length); // R11
    EXPECT_EQ(with(63, 0x80), DecodeError::bad_length);
}

TEST(ControlCodec, TakesAnyBytesWithoutHarm) {
    for (unsigned seed = 1; seed <= 2'000; ++seed) {
        std::mt19937_64 random{seed};
        Bytes bytes(random() % 120);
        for (std::byte& byte : bytes)
            byte = static_cast<std::byte>(random() % 4);
        ControlMessage message;
        Hello hello;
        if (decode_control(bytes, message) == DecodeError::none) {
            EXPECT_EQ(encoded(message), bytes) << "seed " << seed;
        }
        RemoteRing ring;
        static_cast<void>(decode_hello(bytes, hello));
        static_cast<void>(decode_ring(bytes, ring));
    }
}

// --- Ring ----------------------------------------------------------------------------------------

TEST(RingCodec, HasTheDocumentedBytesAndIsDecodedUnchanged) {
    const RemoteRing ring{.address = 6, .key = 7, .bytes = 8};
    const auto data = encode_ring(ring);
    EXPECT_EQ(Bytes(data.begin(), data.end()),
              bytes_of({6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0}));
    RemoteRing out;
    ASSERT_EQ(decode_ring(data, out), DecodeError::none);
    EXPECT_EQ(out, ring);
}

TEST(RingCodec, RefusesOtherLengthsAndARingBeyondTheAddressSpace) {
    const auto data = encode_ring({.address = 6, .key = 7, .bytes = std::uint64_t{1} << 63});
    RemoteRing out;
    EXPECT_EQ(decode_ring(data, out), DecodeError::bad_length);
    EXPECT_EQ(decode_ring(std::span{data}.first(23), out), DecodeError::truncated);
    Bytes longer(data.begin(), data.end());
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode_ring(longer, out), DecodeError::trailing_bytes);
}

// --- Frame of bytes ------------------------------------------------------------------------------

TEST(FrameFlagsCodec, HaveTheDocumentedBitsAndAreDecodedUnchanged) {
    const auto direct = TransferKind::direct;
    const auto indirect = TransferKind::indirect;
    const std::vector<std::pair<FrameNotice, int>> all{
        {{.kind = direct}, 0},
        {{.kind = direct, .more = true}, 8},
        {{.kind = indirect}, 1},
        {{.kind = indirect, .ring = {.waited = true}}, 3},
        {{.kind = indirect, .ring = {.first = true}}, 5},
        {{.kind = indirect, .ring = {.waited = true, .first = true}}, 7},
    };
    for (const auto& [notice, flags] : all) {
        EXPECT_EQ(encode_frame_flags(notice), flags);
        FrameNotice out;
        ASSERT_EQ(decode_frame_flags(static_cast<std::uint8_t>(flags), out), DecodeError::none);
        EXPECT_EQ(out, notice);
    }
    std::size_t good = 0;
    for (int flags = 0; flags < 256; ++flags) {
        FrameNotice out;
        if (decode_frame_flags(static_cast<std::uint8_t>(flags), out) == DecodeError::none) ++good;
    }
    EXPECT_EQ(good, all.size()) << "every other value is refused";
}

// --- Hello ---------------------------------------------------------------------------------------

Hello some_hello() {
    return {.advert_limit_count = 0x0405,
            .advertises = true,
            .needs_adverts = true,
            .reports_no_advert = true,
            .ring_may_grow = true,
            .lends_memory = true};
}

TEST(HelloCodec, HasTheDocumentedBytesAndIsDecodedUnchanged) {
    const auto data = encode_hello(some_hello());
    EXPECT_EQ(Bytes(data.begin(), data.end()), bytes_of({4, 31, 5, 4}));
    for (unsigned flags = 0; flags < 32; ++flags) {
        Hello hello = some_hello();
        hello.advertises = (flags & 1U) != 0;
        hello.needs_adverts = (flags & 2U) != 0;
        hello.reports_no_advert = (flags & 4U) != 0;
        hello.ring_may_grow = (flags & 8U) != 0;
        hello.lends_memory = (flags & 16U) != 0;
        Hello out;
        ASSERT_EQ(decode_hello(encode_hello(hello), out), DecodeError::none);
        EXPECT_EQ(out, hello);
    }
}

TEST(HelloCodec, RefusesWhatItCannotWorkWith) {
    const auto data = encode_hello(some_hello());
    Hello out;
    EXPECT_EQ(decode_hello({}, out), DecodeError::truncated);
    EXPECT_EQ(decode_hello(std::span{data}.first(3), out), DecodeError::truncated);
    Bytes longer(data.begin(), data.end());
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode_hello(longer, out), DecodeError::trailing_bytes);
    longer[0] = std::byte{2};
    EXPECT_EQ(decode_hello(longer, out), DecodeError::unknown_version)
        << "later ones may be longer";
    Bytes flagged(data.begin(), data.end());
    flagged[1] = std::byte{32};
    EXPECT_EQ(decode_hello(flagged, out), DecodeError::unknown_bits);
}

TEST(DecodeErrorText, EveryErrorHasItsOwn) {
    std::vector<std::string_view> texts;
    for (auto i = 0; i <= static_cast<int>(DecodeError::unknown_version); ++i) {
        texts.push_back(to_string(static_cast<DecodeError>(i)));
        EXPECT_NE(texts.back(), "unknown error") << i;
    }
    std::sort(texts.begin(), texts.end());
    EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
}

TEST(Agreement, AHelloAnnouncesWhatTheOptionsOfferAndNeed) {
    const Hello ours = hello_of(improved_sender(0), improved_receiver(100, 200), true);
    EXPECT_EQ(ours, (Hello{.advert_limit_count = 256,
                           .advertises = true,
                           .needs_adverts = false,
                           .reports_no_advert = true,
                           .ring_may_grow = true,
                           .lends_memory = true}));
    SenderOptions direct = published_sender(0);
    direct.mode = TransferMode::direct_only;
    ReceiverOptions silent = published_receiver(100);
    silent.mode = TransferMode::indirect_only;
    const Hello theirs = hello_of(direct, silent, false);
    EXPECT_FALSE(theirs.advertises || theirs.reports_no_advert || theirs.ring_may_grow ||
                 theirs.lends_memory);
    EXPECT_TRUE(theirs.needs_adverts);
}

TEST(Agreement, ModesThatDoNotFitAreNamed) {
    SenderOptions direct = improved_sender(0);
    direct.mode = TransferMode::direct_only;
    ReceiverOptions silent = improved_receiver(100);
    silent.mode = TransferMode::indirect_only;
    const Hello usual = hello_of(improved_sender(0), improved_receiver(100), true);
    EXPECT_EQ(incompatibility(direct, silent, usual), "");
    EXPECT_THAT(std::string{incompatibility(improved_sender(0), silent,
                                            hello_of(direct, improved_receiver(1), true))},
                HasSubstr("is direct-only"));
    EXPECT_THAT(std::string{incompatibility(direct, improved_receiver(1),
                                            hello_of(improved_sender(0), silent, true))},
                HasSubstr("advertises nothing"));
}

TEST(Agreement, NoMoreAdvertsAreSentThanThePeerTakes) {
    const ReceiverOptions options = improved_receiver(100);
    EXPECT_EQ(agreed(options, {.advert_limit_count = 3}, true).advert_limit_count, 3U);
    EXPECT_EQ(agreed(options, {.advert_limit_count = 1'000}, true).advert_limit_count, 256U);
}

TEST(Agreement, WithoutAdvertsTheRingIsUsedOrTheReasonIsNamed) {
    const Hello none{.advert_limit_count = 0, .advertises = true};
    const ReceiverOptions options = improved_receiver(100);
    EXPECT_EQ(incompatibility(improved_sender(0), options, none), "");
    EXPECT_EQ(agreed(options, none, true).mode, TransferMode::indirect_only);
    EXPECT_NO_THROW(validate(agreed(options, none, true)));
    Hello needy = none;
    needy.needs_adverts = true;
    EXPECT_THAT(std::string{incompatibility(improved_sender(0), options, needy)},
                HasSubstr("no adverts"));
    ReceiverOptions direct = published_receiver(0);
    direct.mode = TransferMode::direct_only;
    EXPECT_THAT(std::string{incompatibility(improved_sender(0), direct, none)},
                HasSubstr("no adverts"));
}

TEST(Agreement, AdvertisesShortReceivesToADirectOnlyPeer) {
    const ReceiverOptions options = improved_receiver(100);
    const Hello direct{.advert_limit_count = 1, .needs_adverts = true};
    EXPECT_GT(agreed(options, {.advert_limit_count = 1}, true).advert_threshold_bytes, 0U);
    EXPECT_EQ(agreed(options, direct, true).advert_threshold_bytes, 0U);
}

TEST(Agreement, ASenderWaitsOnlyForAPeerThatReports) {
    const Hello reports{.reports_no_advert = true, .lends_memory = true};
    const Hello silent{.lends_memory = true};
    const SenderOptions options = improved_sender(0);
    EXPECT_LT(agreed(options, reports, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
    EXPECT_EQ(agreed(options, silent, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
}

TEST(Agreement, InFramesNoSideWaitsForAnAdvert) {
    const SenderOptions options = improved_sender(0);
    ASSERT_TRUE(options.drain);
    const Hello writes{.reports_no_advert = true, .lends_memory = true};
    EXPECT_TRUE(agreed(options, writes, 100, 1'000).drain);
    const Hello frames{.reports_no_advert = true};
    EXPECT_FALSE(agreed(options, frames, 100, 1'000).drain);
    EXPECT_EQ(agreed(options, frames, 100, 1'000).patience_threshold_bytes, unlimited_bytes);
}

TEST(Agreement, ASenderFollowsThePeersRingAndTheProvider) {
    const SenderOptions options = improved_sender(0);
    const Hello grows{.ring_may_grow = true, .lends_memory = true};
    EXPECT_TRUE(agreed(options, grows, 100, 1'000).report_ring_waits);
    EXPECT_FALSE(agreed(options, Hello{}, 100, 1'000).report_ring_waits);
    EXPECT_EQ(agreed(options, grows, 100, 1'000).ring_bytes, 100U);
    EXPECT_EQ(agreed(options, grows, 100, 1'000).longest_transfer_bytes, 1'000U);
    EXPECT_EQ(agreed(options, grows, 0, 1'000).mode, TransferMode::direct_only);
    const Hello silent{.advertises = false};
    EXPECT_EQ(agreed(options, silent, 100, 1'000).mode, TransferMode::indirect_only);
    EXPECT_EQ(agreed(options, silent, 0, 1'000).mode, TransferMode::indirect_only)
        << "for a refusal";
}

TEST(Agreement, RingTransfersInFramesFitOneFrame) {
    const SenderOptions options = improved_sender(0);
    const SenderOptions in_frames = agreed(options, Hello{}, 100, 1'000);
    EXPECT_EQ(in_frames.ring_transfer_limit_bytes, 1'000U);
    EXPECT_EQ(in_frames.longest_transfer_bytes, options.longest_transfer_bytes)
        << "a direct transfer may have several frames";
    EXPECT_EQ(agreed(options, Hello{}, 100, 1 << 20).ring_transfer_limit_bytes,
              options.ring_transfer_limit_bytes);
}

TEST(Agreement, InFramesShortSendsGatherWithoutAdverts) {
    const SenderOptions in_frames = agreed(improved_sender(0), Hello{}, 100, 1 << 20);
    EXPECT_EQ(in_frames.coalesce_limit_bytes, 64U * 1024);
    EXPECT_EQ(in_frames.direct_threshold_bytes, 64U * 1024);
    EXPECT_EQ(agreed(improved_sender(0), Hello{}, 100, 2'000).coalesce_limit_bytes, 16U * 1024);
    EXPECT_EQ(agreed(improved_receiver(100), Hello{}, false).advert_threshold_bytes, 64U * 1024);
    EXPECT_EQ(
        agreed(improved_receiver(100), Hello{.needs_adverts = true}, false).advert_threshold_bytes,
        0U);
    // A policy that the study does not have does not exist in frames either.
    EXPECT_EQ(agreed(published_sender(0), Hello{}, 100, 1 << 20).coalesce_limit_bytes, 0U);
    EXPECT_EQ(agreed(published_receiver(100), Hello{}, false).advert_threshold_bytes, 0U);
}

} // namespace
} // namespace netio::stream::wire_test
