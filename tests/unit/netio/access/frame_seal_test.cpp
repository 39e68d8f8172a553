// SPDX-License-Identifier: Apache-2.0
#include "netio/access/frame_seal.hpp"
#include "netio/base/frame.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <set>
#include <vector>

namespace netio::access::frame_seal_test {
namespace {

constexpr std::array<Cipher, 2> ciphers{Cipher::aes_256_gcm, Cipher::chacha20_poly1305};

Message text_of(std::size_t size, int seed = 0) {
    Message text(size);
    for (std::size_t at = 0; at < size; ++at)
        text[at] = static_cast<std::byte>(static_cast<int>(at) * 7 + seed);
    return text;
}

Message sealed_by(Sealer& sealer, const Message& header, const Message& plain) {
    Message out(plain.size() + seal_tag_bytes);
    EXPECT_TRUE(sealer.seal(header, plain, out));
    return out;
}

bool opens(Opener& opener, const Message& header, const Message& sealed, const Message& expected) {
    Message out(sealed.size() - seal_tag_bytes, std::byte{0x5a});
    const bool good = opener.open(header, sealed, out);
    EXPECT_EQ(out, good ? expected : Message(out.size())) << "cleared on failure";
    return good;
}

TEST(RecordSeal, SealedRecordsAreOpenedInOrder) {
    for (const Cipher cipher : ciphers) {
        Sealer sealer{cipher, secret_of(1)};
        Opener opener{cipher, secret_of(1)};
        std::set<Message> seen;
        for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 40U, 4096U, 65536U, 40U, 40U}) {
            const Message header = text_of(8);
            const Message plain = text_of(size);
            const Message sealed = sealed_by(sealer, header, plain);
            EXPECT_TRUE(seen.insert(sealed).second) << "equal texts give different bytes";
            EXPECT_TRUE(opens(opener, header, sealed, plain)) << size;
        }
    }
}

TEST(RecordSeal, MayBeDoneInPlace) {
    for (const Cipher cipher : ciphers) {
        Sealer sealer{cipher, secret_of(1)};
        Opener opener{cipher, secret_of(1)};
        const Message plain = text_of(1000);
        Message memory = plain;
        memory.resize(plain.size() + seal_tag_bytes);
        ASSERT_TRUE(sealer.seal({}, Bytes{memory}.first(plain.size()), memory));
        EXPECT_NE(Bytes{memory}.first(16)[0], plain[0]);
        ASSERT_TRUE(opener.open({}, memory, std::span{memory}.first(plain.size())));
        memory.resize(plain.size());
        EXPECT_EQ(memory, plain);
    }
}

TEST(RecordSeal, ATamperedByteAnywhereEndsTheDirection) {
    for (const Cipher cipher : ciphers) {
        Sealer sealer{cipher, secret_of(1)};
        const Message header = text_of(8);
        const Message plain = text_of(50);
        const Message first = sealed_by(sealer, header, plain);
        const Message second = sealed_by(sealer, header, plain);
        for (std::size_t at = 0; at < header.size() + first.size(); ++at) {
            for (const unsigned mask : {1U, 0x80U, 0xffU}) {
                Message wrong_header = header;
                Message wrong = first;
                (at < header.size() ? wrong_header[at] : wrong[at - header.size()]) ^=
                    static_cast<std::byte>(mask);
                Opener opener{cipher, secret_of(1)};
                EXPECT_FALSE(opens(opener, wrong_header, wrong, plain)) << at;
                EXPECT_TRUE(opener.has_failed());
                EXPECT_FALSE(opens(opener, header, first, plain)) << "no record after a failure";
                EXPECT_FALSE(opens(opener, header, second, plain));
            }
        }
        for (std::size_t size = 0; size < first.size(); ++size) {
            Opener opener{cipher, secret_of(1)};
            Message out(size < seal_tag_bytes ? 0 : size - seal_tag_bytes);
            EXPECT_FALSE(opener.open(header, Bytes{first}.first(size), out)) << size;
        }
    }
}

TEST(RecordSeal, ARecordLeftOutRepeatedMovedOrReflectedIsNotOpened) {
    for (const Cipher cipher : ciphers) {
        Sealer sealer{cipher, secret_of(1)};
        const Message plain = text_of(40);
        std::vector<Message> records;
        for (int each = 0; each < 4; ++each)
            records.push_back(sealed_by(sealer, {}, plain));
        for (std::size_t first = 0; first < 4; ++first) {
            for (std::size_t second = 0; second < 4; ++second) {
                Opener opener{cipher, secret_of(1)};
                const bool good = opens(opener, {}, records[first], plain) &&
                                  opens(opener, {}, records[second], plain);
                EXPECT_EQ(good, first == 0 && second == 1);
            }
        }
        Opener other{cipher, secret_of(2)}; // of the other direction
        EXPECT_FALSE(opens(other, {}, records[0], plain));
    }
}

TEST(RecordSeal, KeysChangeAtTheByteOrRecordLimitOnBothSides) {
    for (const Cipher cipher : ciphers) {
        for (const KeyLife life :
             {KeyLife{.bytes = 100, .records = 1000}, KeyLife{.bytes = 100000, .records = 3},
              KeyLife{.bytes = 1}, KeyLife{.records = 1}}) {
            Sealer sealer{cipher, secret_of(1), life};
            Opener opener{cipher, secret_of(1), life};
            Opener without{cipher, secret_of(1)};
            bool noticed = false;
            for (int each = 0; each < 50; ++each) {
                const Message sealed = sealed_by(sealer, text_of(8), text_of(32, each));
                EXPECT_TRUE(opens(opener, text_of(8), sealed, text_of(32, each)));
                EXPECT_EQ(sealer.keys(), opener.keys());
                Message out(32);
                noticed = noticed || !without.open(text_of(8), sealed, out);
            }
            const std::uint64_t every = life.bytes == 100 ? 3 : life.records == 3 ? 3 : 1;
            EXPECT_EQ(sealer.keys(), 1 + 50 / every);
            EXPECT_TRUE(noticed) << "the key has changed";
        }
    }
}

TEST(RecordSeal, TheRecordThatBringsAKeyToItsCountIsTheLastWithIt) {
    for (const Cipher cipher : ciphers) {
        Sealer sealer{cipher, secret_of(1), {.bytes = 80}};
        for (const std::uint64_t expected : {1U, 2U, 2U, 3U}) {
            static_cast<void>(sealed_by(sealer, text_of(8), text_of(32)));
            EXPECT_EQ(sealer.keys(), expected);
        }
    }
}

TEST(RecordSeal, ANumberIsNeverUsedTwiceAndTheLastIsTheEnd) {
    for (const Cipher cipher : ciphers) {
        const std::uint64_t first = RecordCount::limit - 3;
        Sealer sealer{cipher, secret_of(1), {.bytes = 40}, first};
        Opener opener{cipher, secret_of(1), {.bytes = 40}, first};
        std::set<Message> seen;
        for (int each = 0; each < 3; ++each) {
            const Message sealed = sealed_by(sealer, {}, text_of(40));
            EXPECT_TRUE(seen.insert(sealed).second);
            EXPECT_TRUE(opens(opener, {}, sealed, text_of(40)));
        }
        Message out(40 + seal_tag_bytes, std::byte{7});
        const Message before = out;
        EXPECT_FALSE(sealer.seal({}, text_of(40), out));
        EXPECT_EQ(out, before);
        std::array<std::byte, seal_tag_bytes> tag{};
        EXPECT_FALSE(sealer.tag({}, tag));
        Message opened(40);
        EXPECT_FALSE(opener.open({}, *seen.begin(), opened));
    }
}

TEST(RecordSeal, ATagStandsForARecordInClearOfSeveralParts) {
    for (const Cipher cipher : ciphers) {
        const Message whole = text_of(100);
        const auto parts_at = [&](std::size_t one, std::size_t two) {
            return std::vector<Bytes>{Bytes{whole}.first(one), Bytes{whole}.subspan(one, two - one),
                                      Bytes{whole}.subspan(two)};
        };
        std::array<std::byte, seal_tag_bytes> tag{};
        for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
            Sealer sealer{cipher, secret_of(1)};
            ASSERT_TRUE(sealer.tag(parts_at(cut / 2, cut), tag));
            Opener opener{cipher, secret_of(1)};
            const Bytes one_part{whole};
            EXPECT_TRUE(opener.check({&one_part, 1}, tag)) << "for every division into parts";
            EXPECT_FALSE(opener.check({&one_part, 1}, tag)) << "once";
        }
        for (std::size_t at = 0; at < whole.size() + tag.size(); ++at) {
            Message wrong = whole;
            auto wrong_tag = tag;
            (at < whole.size() ? wrong[at] : wrong_tag[at - whole.size()]) ^= std::byte{1};
            Opener opener{cipher, secret_of(1)};
            const Bytes part{wrong};
            EXPECT_FALSE(opener.check({&part, 1}, wrong_tag)) << at;
        }
        Opener opener{cipher, secret_of(1)};
        EXPECT_FALSE(opener.check({}, Bytes{tag}.first(15)));
    }
}

TEST(Tagger, TagsAreOfTheFrameItsNumberAndTheDirection) {
    Tagger tagger{secret_of(1)};
    const Message header = text_of(8);
    const Message body = text_of(30);
    const FrameTag first = tagger.next(header, body);
    const FrameTag second = tagger.next(header, body);
    EXPECT_NE(first, second);
    const auto checked = [&](const std::vector<FrameTag>& tags, int seed = 1) {
        TagChecker checker{secret_of(seed)};
        return std::ranges::all_of(
            tags, [&](const FrameTag& tag) { return checker.check(header, body, tag); });
    };
    EXPECT_TRUE(checked({first, second}));
    EXPECT_FALSE(checked({second}));
    EXPECT_FALSE(checked({first, first}));
    EXPECT_FALSE(checked({first}, 2));
    for (std::size_t at = 0; at < header.size() + body.size() + first.size(); ++at) {
        Message wrong_header = header;
        Message wrong_body = body;
        FrameTag tag = first;
        (at < 8 ? wrong_header[at] : at < 38 ? wrong_body[at - 8] : tag[at - 38]) ^= std::byte{1};
        TagChecker checker{secret_of(1)};
        EXPECT_FALSE(checker.check(wrong_header, wrong_body, tag)) << at;
        EXPECT_FALSE(checker.check(header, body, first)) << "after a failure, nothing is accepted";
    }
    TagChecker checker{secret_of(1)};
    EXPECT_FALSE(checker.check(header, body, Bytes{first}.first(7)));
}

// The handshake opens messages with it, and does not clear the output itself.
TEST(Aead, ClearsTheOutputAfterAFailure) {
    for (const Cipher cipher : ciphers) {
        Aead sender{cipher, secret_of(1)};
        Aead receiver{cipher, secret_of(2)};
        const Message plain = text_of(40);
        const Bytes part{plain};
        Message sealed(plain.size() + seal_tag_bytes);
        sender.seal(0, {}, {&part, 1}, sealed);
        Message out(plain.size(), std::byte{0x5a});
        EXPECT_FALSE(receiver.open(0, {}, sealed, out));
        EXPECT_EQ(out, Message(plain.size()));
    }
}

TEST(RecordSeal, BothCiphersAreThere) {
    // A peer may request either cipher, whatever this processor supports in hardware.
    static_cast<void>(processor_has_aes());
    for (const Cipher cipher : ciphers) {
        Sealer sealer{cipher, secret_of(1)};
        EXPECT_EQ(sealed_by(sealer, {}, {}).size(), seal_tag_bytes);
    }
}

using Frame = std::vector<std::byte>;

// A sealer and the matching opener.
struct SealedPath {
    explicit SealedPath(Protection level)
        : sealer{level == Protection::peers ? FrameSealer{Tagger{key}}
                                            : FrameSealer{level, {Cipher::aes_256_gcm, key}}},
          opener{level == Protection::peers ? FrameOpener{TagChecker{key}}
                                            : FrameOpener{level, {Cipher::aes_256_gcm, key}}} {}

    Frame seal(std::uint8_t kind, std::size_t body_bytes) {
        std::array<std::byte, frame_header_bytes> header{};
        header[0] = std::byte{kind};
        const std::vector<std::byte> body(body_bytes, std::byte{7});
        const std::array<Bytes, 2> parts{header, body};
        const std::size_t behind = sealer.bytes_behind(kind);
        Frame frame(header.begin(), header.end());
        if (!sealer.encrypts()) frame.insert(frame.end(), body.begin(), body.end());
        const std::size_t begin = frame.size();
        frame.resize(frame_header_bytes + body_bytes + behind);
        if (behind > 0) {
            EXPECT_TRUE(sealer.seal(parts, std::span{frame}.subspan(begin)));
        }
        return frame;
    }

    Secret key = Secret::random();
    FrameSealer sealer;
    FrameOpener opener;
};

// docs/wire-formats.md, "Tags": open, shutdown and its confirmation, window, and the frames of a
// service that change its state.
bool has_tag_with_peers(unsigned kind) {
    return kind == 1 || kind == 4 || kind == 5 || kind == 8 || kind >= 20;
}

TEST(FrameSeal, WithPeersOnlyFramesThatChangeStateHaveATag) {
    const SealedPath path{Protection::peers};
    for (unsigned kind = 0; kind < 256; ++kind) {
        EXPECT_EQ(path.sealer.bytes_behind(static_cast<std::uint8_t>(kind)),
                  has_tag_with_peers(kind) ? 8U : 0U)
            << kind;
    }
}

TEST(FrameSeal, WithIntegrityAndPrivacyEveryFrameHasATag) {
    for (const Protection level : {Protection::integrity, Protection::privacy}) {
        const SealedPath path{level};
        for (unsigned kind = 0; kind < 256; ++kind)
            EXPECT_EQ(path.sealer.bytes_behind(static_cast<std::uint8_t>(kind)), 16U) << kind;
        EXPECT_EQ(path.sealer.encrypts(), level == Protection::privacy);
    }
}

TEST(FrameSeal, AddsTheExpectedBytesAtEachLevel) {
    EXPECT_EQ(seal_bytes(Protection::none), 0U);
    EXPECT_EQ(seal_bytes(Protection::peers), 8U);
    EXPECT_EQ(seal_bytes(Protection::integrity), 16U);
    EXPECT_EQ(seal_bytes(Protection::privacy), 16U);
    EXPECT_FALSE(seals_all(Protection::none) || seals_all(Protection::peers));
    EXPECT_TRUE(seals_all(Protection::integrity) && seals_all(Protection::privacy));
}

TEST(FrameSeal, IsRemovedIfItIsValidAndLeavesTheFrameUnchanged) {
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy}) {
        SealedPath path{level};
        for (const std::uint8_t kind : std::initializer_list<std::uint8_t>{4, 3, 16, 20, 255}) {
            for (const std::size_t body_bytes : {0U, 1U, 100U}) {
                Frame sealed = path.seal(kind, body_bytes);
                std::span<std::byte> frame{sealed};
                ASSERT_TRUE(path.opener.open(frame)) << int{kind} << ", " << body_bytes;
                ASSERT_EQ(frame.size(), frame_header_bytes + body_bytes);
                EXPECT_EQ(frame[0], std::byte{kind});
                for (const std::byte byte : frame.subspan(frame_header_bytes))
                    EXPECT_EQ(byte, std::byte{7});
            }
        }
    }
}

TEST(FrameSeal, AFrameThatIsTooShortForItIsNotOpened) {
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy}) {
        for (std::size_t size = frame_header_bytes; size < frame_header_bytes + seal_bytes(level);
             ++size) {
            SealedPath path{level};
            Frame sealed = path.seal(20, 0);
            std::span<std::byte> frame = std::span{sealed}.first(size);
            EXPECT_FALSE(path.opener.open(frame)) << size;
        }
    }
}

} // namespace
} // namespace netio::access::frame_seal_test
