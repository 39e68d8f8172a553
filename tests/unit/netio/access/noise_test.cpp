// SPDX-License-Identifier: Apache-2.0
#include "netio/access/crypto.hpp"
#include "netio/access/frame_seal.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"
#include "tests/unit/netio/access/noise_vectors.hpp"

#include <gtest/gtest.h>

#include <charconv>

namespace netio::access::noise_test {
namespace {

using Side = NoiseHandshake::Side;

Message from_hex(std::string_view text) {
    Message bytes;
    for (std::size_t at = 0; at < text.size(); at += 2) {
        unsigned value = 0;
        std::from_chars(text.data() + at, text.data() + at + 2, value, 16);
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

Secret secret_from(std::string_view text) {
    const Message bytes = from_hex(text);
    return Secret{Bytes{bytes}.first<secret_bytes>()};
}

Message write(NoiseHandshake& side, Bytes payload) {
    Message message(payload.size() + NoiseHandshake::overhead);
    side.write(payload, message);
    return message;
}

std::optional<Message> read(NoiseHandshake& side, const Message& message) {
    Message payload(
        message.size() < NoiseHandshake::overhead ? 0 : message.size() - NoiseHandshake::overhead);
    return side.read(message, payload) ? std::optional{payload} : std::nullopt;
}

struct Pair {
    explicit Pair(Cipher cipher = Cipher::aes_256_gcm, int psk = 1, int other_psk = 1,
                  std::string_view prologue = "gate", std::string_view other = "gate")
        : initiator{Side::initiator, cipher, as_bytes(prologue), secret_of(psk), secret_of(2)},
          responder{Side::responder, cipher, as_bytes(other), secret_of(other_psk), secret_of(3)} {}
    NoiseHandshake initiator;
    NoiseHandshake responder;
};

TEST(Noise, MatchesThePublishedVectors) {
    for (const NoiseVector& vector : noise_vectors) {
        SCOPED_TRACE(vector.name);
        const Cipher cipher = vector.name.find("AESGCM") != vector.name.npos
                                  ? Cipher::aes_256_gcm
                                  : Cipher::chacha20_poly1305;
        const Message prologue = from_hex(vector.prologue);
        const Secret psk = secret_from(vector.psk);
        NoiseHandshake initiator{Side::initiator, cipher, prologue, psk,
                                 secret_from(vector.initiator_ephemeral)};
        NoiseHandshake responder{Side::responder, cipher, prologue, psk,
                                 secret_from(vector.responder_ephemeral)};
        const auto payload = [&](std::size_t at) { return from_hex(vector.messages[at].payload); };
        const auto sealed = [&](std::size_t at) {
            return from_hex(vector.messages[at].ciphertext);
        };
        EXPECT_EQ(write(initiator, payload(0)), sealed(0));
        EXPECT_EQ(read(responder, sealed(0)), payload(0));
        EXPECT_EQ(write(responder, payload(1)), sealed(1));
        EXPECT_EQ(read(initiator, sealed(1)), payload(1));
        ASSERT_TRUE(initiator.result() && responder.result());
        const Message hash = from_hex(vector.handshake_hash);
        EXPECT_TRUE(std::ranges::equal(initiator.result()->hash, hash));
        EXPECT_TRUE(std::ranges::equal(responder.result()->hash, hash));
        EXPECT_EQ(initiator.result()->up, responder.result()->up);
        EXPECT_EQ(initiator.result()->down, responder.result()->down);
        // Records are the transport messages of Noise.
        Sealer up{cipher, initiator.result()->up};
        Sealer down{cipher, responder.result()->down};
        Opener from_up{cipher, responder.result()->up};
        Opener from_down{cipher, initiator.result()->down};
        for (std::size_t at = 2; at < vector.messages.size(); ++at) {
            Message record(payload(at).size() + seal_tag_bytes);
            ASSERT_TRUE((at % 2 == 0 ? up : down).seal({}, payload(at), record));
            EXPECT_EQ(record, sealed(at));
            Message opened(payload(at).size());
            EXPECT_TRUE((at % 2 == 0 ? from_up : from_down).open({}, record, opened));
            EXPECT_EQ(opened, payload(at));
        }
    }
}

TEST(Noise, AnotherPskPrologueOrCipherIsRefused) {
    Pair other_psk{Cipher::aes_256_gcm, 1, 4};
    EXPECT_FALSE(read(other_psk.responder, write(other_psk.initiator, {})));
    Pair other_prologue{Cipher::aes_256_gcm, 1, 1, "privacy", "peers"};
    EXPECT_FALSE(read(other_prologue.responder, write(other_prologue.initiator, {})));
    Pair aes{Cipher::aes_256_gcm};
    Pair chacha{Cipher::chacha20_poly1305};
    EXPECT_FALSE(read(chacha.responder, write(aes.initiator, {})));
}

TEST(Noise, OneWrongBitInEitherMessageEndsIt) {
    for (const Cipher cipher : {Cipher::aes_256_gcm, Cipher::chacha20_poly1305}) {
        Pair pair{cipher};
        const Message first = write(pair.initiator, as_bytes("hello"));
        for (std::size_t bit = 0; bit < 8 * first.size(); ++bit) {
            Message wrong = first;
            wrong[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
            Pair fresh{cipher};
            EXPECT_FALSE(read(fresh.responder, wrong)) << bit;
            EXPECT_FALSE(fresh.responder.may_read() || fresh.responder.may_write());
        }
        ASSERT_TRUE(read(pair.responder, first));
        const Message second = write(pair.responder, as_bytes("welcome"));
        for (std::size_t bit = 0; bit < 8 * second.size(); ++bit) {
            Message wrong = second;
            wrong[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
            Pair fresh{cipher};
            EXPECT_EQ(write(fresh.initiator, as_bytes("hello")), first);
            EXPECT_FALSE(read(fresh.initiator, wrong)) << bit;
            EXPECT_FALSE(fresh.initiator.result());
        }
        EXPECT_TRUE(read(pair.initiator, second));
    }
}

TEST(Noise, AnIncompleteMessageIsRefused) {
    Pair pair;
    const Message first = write(pair.initiator, {});
    EXPECT_EQ(first.size(), 48U);
    for (std::size_t size = 0; size < first.size(); ++size) {
        Pair fresh;
        EXPECT_FALSE(
            read(fresh.responder, {first.begin(), first.begin() + static_cast<long>(size)}));
    }
}

TEST(Noise, MessagesGoByTurns) {
    Pair pair;
    EXPECT_TRUE(pair.initiator.may_write() && !pair.initiator.may_read());
    EXPECT_TRUE(!pair.responder.may_write() && pair.responder.may_read());
    const Message first = write(pair.initiator, {});
    EXPECT_TRUE(!pair.initiator.may_write() && pair.initiator.may_read());
    ASSERT_TRUE(read(pair.responder, first));
    EXPECT_TRUE(pair.responder.may_write() && !pair.responder.may_read());
    EXPECT_FALSE(pair.responder.result());
    ASSERT_TRUE(read(pair.initiator, write(pair.responder, {})));
    for (const NoiseHandshake* side : {&pair.initiator, &pair.responder})
        EXPECT_TRUE(!side->may_write() && !side->may_read() && side->result());
}

TEST(Noise, AReflectedMessageIsNotTaken) {
    Pair pair;
    const Message first = write(pair.initiator, {});
    EXPECT_FALSE(read(pair.initiator, first));
}

TEST(X25519, BothSidesGetOneSecretAndNoneFromAWeakKey) {
    const Secret one = secret_of(5);
    const Secret other = secret_of(6);
    const auto here = x25519(one, x25519_public(other));
    ASSERT_TRUE(here);
    EXPECT_EQ(*here, *x25519(other, x25519_public(one)));
    PublicKey zero{};
    EXPECT_FALSE(x25519(one, zero));
    zero[0] = std::byte{1};
    EXPECT_FALSE(x25519(one, zero));
}

TEST(Noise, AnInitiatorWithAKeyThatGivesNoSecretGetsNone) {
    // Everything else in the message is correct: it is made with the pre-shared key.
    for (const std::byte low : {std::byte{0}, std::byte{1}}) {
        Pair pair;
        PublicKey weak{};
        weak[0] = low;
        // The same computation as the initiator's, up to the payload.
        const Digest name = [] {
            Digest hash{};
            std::ranges::copy(as_bytes("Noise_NNpsk0_25519_AESGCM_SHA256"), hash.begin());
            return hash;
        }();
        Digest hash = sha256({name, as_bytes("gate")});
        Secret ignored;
        auto [chaining, mixed] = hkdf(Secret{name}, secret_of(1).bytes(), &ignored);
        hash = sha256({hash, mixed.bytes()});
        hash = sha256({hash, weak});
        auto [next, key] = hkdf(chaining, weak);
        static_cast<void>(next);
        Message message(NoiseHandshake::overhead);
        std::ranges::copy(weak, message.begin());
        const Bytes associated{hash};
        Aead{Cipher::aes_256_gcm, key}.seal(0, {&associated, 1}, {},
                                            std::span{message}.subspan(32));
        ASSERT_TRUE(read(pair.responder, message)) << "the message itself is genuine";
        const Message answer = write(pair.responder, {});
        EXPECT_FALSE(pair.responder.result());
        EXPECT_EQ(answer, Message(answer.size()));
        EXPECT_FALSE(pair.responder.may_read() || pair.responder.may_write()) << "it has ended";
    }
}

} // namespace
} // namespace netio::access::noise_test
