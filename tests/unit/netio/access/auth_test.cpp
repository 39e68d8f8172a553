// SPDX-License-Identifier: Apache-2.0
#include "netio/access/crypto.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

namespace netio::access::auth_test {
namespace {

using namespace std::chrono_literals;

std::string hex(Bytes bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        constexpr std::string_view digits = "0123456789abcdef";
        text += digits[std::to_integer<std::size_t>(byte) / 16];
        text += digits[std::to_integer<std::size_t>(byte) % 16];
    }
    return text;
}

TEST(Digest, IsWhatTheStandardsSay) {
    // FIPS 180-4, "abc"; RFC 4231, case 2.
    EXPECT_EQ(hex(sha256({as_bytes("a"), as_bytes("bc")})),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(hmac_sha256(as_bytes("Jefe"),
                              {as_bytes("what do ya want "), as_bytes("for nothing?")})),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex(hmac_sha256({}, {})),
              "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Digest, KeysOfDifferentPurposesAreDifferent) {
    const Secret secret = secret_of(1);
    const std::vector<Secret> all{secret, derive(secret, Purpose::auth),
                                  derive(secret, Purpose::tag), derive(secret, Purpose::psk)};
    for (std::size_t one = 0; one < all.size(); ++one) {
        for (std::size_t other = 0; other < one; ++other)
            EXPECT_NE(all[one], all[other]);
    }
}

TEST(Protection, EveryFlagByteMeansOneThingOrNothing) {
    int good = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto flags = decode_flags(static_cast<std::uint8_t>(byte));
        if (!flags) continue;
        ++good;
        EXPECT_EQ(encode(*flags), byte);
        EXPECT_TRUE(flags->has_key || *flags == AuthFlags{});
    }
    EXPECT_EQ(good, 1 + 4 * 2);
}

// The hello fields that the authentication reads are at the offsets that the session uses.
TEST(AuthTranscript, KnowsTheHello) {
    const Message hello = hello_of(0x1112131415161718);
    ASSERT_EQ(hello.size(), auth_hello_bytes);
    EXPECT_EQ(hello[auth_service_at], static_cast<std::byte>(Service::publish_subscribe));
    EXPECT_EQ(hello[auth_flags_at], std::byte{0});
    EXPECT_EQ(hello[auth_instance_at], std::byte{0x18});
    EXPECT_EQ(rejection_of(code_challenge).size(), auth_rejection_bytes);
    EXPECT_LE(auth_request_bytes, connection_data_limit);
}

TEST(AuthServer, TwoAttemptsLetTheHolderOfAKeyInAndProveTheServer) {
    TestServer server{address_a, {key_of(1, "services=pubsub fids=0-9"), key_of(2)}};
    TestClient client{key_of(1), address_a, {.protection = Protection::integrity}};
    const Message first = client.request();
    EXPECT_EQ(first.size(), 30U);
    const Message challenge = server.take(first, client_host);
    EXPECT_EQ(server.verdict.outcome, Outcome::challenged);
    EXPECT_EQ(challenge.size(), 30U);
    ASSERT_EQ(client.gate.take_challenge(challenge), AuthClient::Next::again);
    const Message second = client.request();
    EXPECT_EQ(second.size(), 55U);
    const Message answer = server.take(second, client_host);
    ASSERT_EQ(server.verdict.outcome, Outcome::admitted);
    EXPECT_EQ(answer.size(), 44U);
    EXPECT_EQ(server.verdict.admission->id(), 1);
    EXPECT_EQ(server.verdict.admission->name(), "key1");
    EXPECT_EQ(server.verdict.admission->protection(), Protection::integrity);
    EXPECT_EQ(server.verdict.admission->rights().fids.size(), 1U);
    ASSERT_EQ(client.gate.take_answer(answer), AuthClient::Answer::genuine);
    ASSERT_TRUE(client.gate.keys());
    EXPECT_EQ(client.gate.keys()->tags_up, server.keys->tags_up);
    EXPECT_EQ(client.gate.keys()->tags_down, server.keys->tags_down);
    EXPECT_NE(server.keys->tags_up, server.keys->tags_down);
    EXPECT_EQ(client.gate.keys()->psk, server.keys->psk);
    EXPECT_EQ(client.gate.keys()->prologue, server.keys->prologue);
    EXPECT_EQ(server.gate.counters().admitted, 1U);
    EXPECT_EQ(server.gate.counters().challenged, 1U);
}

TEST(AuthServer, TheBytesAreTheDocumentedOnes) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a, {.protection = Protection::peers, .lacks_aes = true}};
    const Message first = client.request();
    EXPECT_EQ(first[7], std::byte{0x0b});
    EXPECT_EQ(hex(Bytes{first}.subspan(28)), "0100");
    const Message challenge = server.take(first, client_host);
    const std::uint16_t slot = 450; // an hour in slots of 8 s
    EXPECT_EQ(hex(Bytes{challenge}.subspan(12, 2)), "c201");
    const Bytes server_nonce = Bytes{challenge}.subspan(14);
    const std::array<std::byte, 9> which{std::byte{1}, std::byte{slot & 255}, std::byte{slot >> 8}};
    EXPECT_EQ(hex(server_nonce),
              hex(hmac_sha256(secret_of(200).bytes(), {as_bytes("netio cookie 1"), client_host,
                                                       which, Bytes{first}.subspan(16, 8)}))
                  .substr(0, 32));
    static_cast<void>(client.gate.take_challenge(challenge));
    const Message second = client.request();
    EXPECT_EQ(hex(Bytes{second}.subspan(28, 11)), "0101c201"
                                                  "02000000000001");
    const Secret gate_key = derive(secret_of(1), Purpose::auth);
    const std::array<std::byte, 2> port{std::byte{12345 & 255}, std::byte{12345 >> 8}};
    EXPECT_EQ(hex(Bytes{second}.subspan(39)),
              hex(hmac_sha256(gate_key.bytes(), {as_bytes("netio c2s 1"), Bytes{second}.first(39),
                                                 server_nonce, address_a.host, port}))
                  .substr(0, 32));
    const Message answer = server.take(second, client_host);
    EXPECT_EQ(answer[7], std::byte{0x0b});
    EXPECT_EQ(hex(Bytes{answer}.subspan(28)),
              hex(hmac_sha256(gate_key.bytes(),
                              {as_bytes("netio s2c 1"), Bytes{answer}.first(28),
                               Bytes{second}.first(39), server_nonce, address_a.host, port}))
                  .substr(0, 32));
}

TEST(AuthServer, OneWrongBitAnywhereIsRefused) {
    const TestServer fresh{address_a, {key_of(1), key_of(2)}};
    TestServer server = fresh;
    TestClient client{key_of(1), address_a};
    const Message second = proved_request(client, server);
    for (std::size_t bit = 0; bit < 8 * second.size(); ++bit) {
        Message wrong = second;
        wrong[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        TestServer again = fresh;
        again.take(wrong, client_host);
        EXPECT_NE(again.verdict.outcome, Outcome::admitted) << "bit " << bit;
    }
    const Message answer = server.take(second, client_host);
    for (std::size_t bit = 0; bit < 8 * answer.size(); ++bit) {
        Message wrong = answer;
        wrong[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        TestClient again = client;
        EXPECT_EQ(again.gate.take_answer(wrong), AuthClient::Answer::wrong_proof) << "bit " << bit;
        EXPECT_FALSE(again.gate.keys());
    }
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::genuine);
}

TEST(AuthServer, APartOfARequestIsRefusedAndPaddingIsNot) {
    const TestServer fresh{address_a, {key_of(1)}};
    TestServer server = fresh;
    TestClient client{key_of(1), address_a};
    const Message second = proved_request(client, server);
    for (std::size_t size = 0; size < second.size(); ++size) {
        server.take({second.begin(), second.begin() + static_cast<std::ptrdiff_t>(size)},
                    client_host);
        EXPECT_EQ(server.verdict.outcome, Outcome::refused) << size;
        EXPECT_EQ(server.verdict.refusal, Refusal::malformed) << size;
    }
    Message padded = second;
    padded.resize(256);
    server.take(padded, client_host);
    EXPECT_EQ(server.verdict.outcome, Outcome::admitted);
}

// Bytes after the request in memory, here the rest of the complete request, do not belong to it.
TEST(AuthServer, APartOfAFirstRequestIsRefusedWhateverFollowsInMemory) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    Message part = client.request();
    while (!part.empty()) {
        part.pop_back();
        server.take(part, client_host);
        EXPECT_EQ(server.verdict.outcome, Outcome::refused) << part.size();
        EXPECT_EQ(server.verdict.refusal, Refusal::malformed) << part.size();
    }
}

TEST(AuthServer, EveryFailureHasOneTextForThePeerAndItsReasonHere) {
    std::vector<Message> answers;
    const auto refused_by = [&](TestServer& server, const Message& request,
                                const Host& source = client_host) {
        answers.push_back(server.take(request, source));
        EXPECT_EQ(server.verdict.outcome, Outcome::refused);
        EXPECT_EQ(server.gate.counters().refused[static_cast<std::size_t>(server.verdict.refusal)],
                  1U);
        return server.verdict.refusal;
    };
    const TestServer fresh{address_a,
                           {key_of(1), key_of(3, "services=stream")},
                           200,
                           {.min_protection = Protection::peers}};
    const AuthClient::Options options{.protection = Protection::peers};
    TestServer server = fresh;
    TestClient unknown{key_of(2), address_a, options};
    EXPECT_EQ(refused_by(server, proved_request(unknown, server)), Refusal::unknown_key);
    Key pretended = key_of(2);
    pretended.id = 1;
    TestClient liar{pretended, address_a, options};
    EXPECT_EQ(refused_by(server, proved_request(liar, server)), Refusal::wrong_proof);
    TestClient weak{key_of(1), address_a};
    EXPECT_EQ(refused_by(server, proved_request(weak, server)), Refusal::protection_too_low);
    TestClient other{key_of(3), address_a, options};
    EXPECT_EQ(refused_by(server, proved_request(other, server)), Refusal::service_not_permitted);
    TestClient late{key_of(1), address_a, options};
    const Message too_late = proved_request(late, server);
    server.now += 17s;
    EXPECT_EQ(refused_by(server, too_late), Refusal::stale);
    TestClient good{key_of(1), address_a, options};
    const Message used = proved_request(good, server);
    server.take(used, client_host);
    ASSERT_EQ(server.verdict.outcome, Outcome::admitted);
    EXPECT_EQ(refused_by(server, used), Refusal::replayed);
    Message odd = used;
    odd[auth_kind_at] = std::byte{2};
    EXPECT_EQ(refused_by(server, odd), Refusal::malformed);
    for (const Message& answer : answers)
        EXPECT_EQ(answer, answers.front());
    for (std::size_t each = 0; each < refusal_count; ++each)
        EXPECT_NE(to_string(static_cast<Refusal>(each)), "?");
}

TEST(AuthServer, AChallengeIsAnsweredWithinItsSlotOrTheNext) {
    struct Case {
        std::chrono::seconds start, waited;
        bool good;
    };
    for (const auto& [start, waited, good] :
         {Case{0s, 7s, true}, {0s, 15s, true}, {0s, 16s, false}, {7s, 8s, true}, {7s, 9s, false}}) {
        TestServer server{address_a, {key_of(1)}};
        server.now = TimePoint{8000s} + start;
        TestClient client{key_of(1), address_a};
        const Message request = proved_request(client, server);
        server.now += waited;
        server.take(request, client_host);
        EXPECT_EQ(server.verdict.outcome == Outcome::admitted, good) << waited.count();
    }
}

TEST(AuthServer, AReusedSlotNumberIsAnotherSlot) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server);
    server.now += 65536 * AuthServer::slot_length;
    server.take(request, client_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::wrong_proof);
}

TEST(AuthServer, RemembersALimitedNumberOfProofsAndThenPostpones) {
    TestServer server{address_a, {key_of(1)}, 200, {.proofs_per_key = 3}};
    const auto outcome = [&](std::uint64_t instance) {
        TestClient client{key_of(1), address_a};
        client.instance = instance;
        server.take(proved_request(client, server), client_host);
        return server.verdict.outcome;
    };
    for (std::uint64_t instance = 0; instance < 3; ++instance)
        EXPECT_EQ(outcome(instance), Outcome::admitted);
    EXPECT_EQ(outcome(3), Outcome::busy);
    EXPECT_EQ(server.verdict.shortage, Shortage::proofs);
    EXPECT_EQ(server.gate.counters().busy, 1U);
    server.now += 8s;
    EXPECT_EQ(outcome(3), Outcome::busy);
    server.now += 8s;
    EXPECT_EQ(outcome(3), Outcome::admitted);
}

TEST(AuthServer, AKeyThatIsShownTooOftenKeepsNoOtherKeyOut) {
    TestServer server{address_a, {key_of(1), key_of(2)}};
    const auto outcome = [&](int id, std::uint64_t instance) {
        TestClient client{key_of(id), address_a};
        client.instance = instance;
        server.take(proved_request(client, server), client_host);
        return server.verdict.outcome;
    };
    for (std::uint64_t instance = 0; instance < AuthServer::Options{}.proofs_per_key; ++instance)
        ASSERT_EQ(outcome(1, instance), Outcome::admitted);
    for (std::uint64_t instance = 1'000'000; instance < 1'070'000; ++instance)
        ASSERT_EQ(outcome(1, instance), Outcome::busy);
    EXPECT_EQ(server.verdict.claimed, 1);
    EXPECT_EQ(outcome(2, 0), Outcome::admitted);
    server.now += 8s;
    EXPECT_EQ(outcome(1, 0), Outcome::busy);
    EXPECT_EQ(outcome(2, 0), Outcome::admitted);
}

TEST(ReplayCache, KeepsALimitedNumberPerKeyOverBothSlots) {
    ReplayCache memory{2};
    const auto entry = [](int id, int number) {
        return ReplayCache::Entry{static_cast<std::byte>(id), static_cast<std::byte>(number)};
    };
    using Seen = ReplayCache::Seen;
    memory.advance(5);
    EXPECT_EQ(memory.remember(5, entry(7, 1)), Seen::never);
    memory.advance(6);
    EXPECT_EQ(memory.remember(5, entry(7, 1)), Seen::before);
    EXPECT_EQ(memory.remember(6, entry(7, 2)), Seen::never);
    EXPECT_EQ(memory.remember(6, entry(7, 3)), Seen::limit_reached);
    EXPECT_EQ(memory.remember(5, entry(7, 3)), Seen::limit_reached);
    EXPECT_EQ(memory.remember(6, entry(7, 2)), Seen::before) << "also without room";
    EXPECT_EQ(memory.remember(6, entry(255, 1)), Seen::never);
    memory.advance(7);
    EXPECT_EQ(memory.remember(7, entry(7, 4)), Seen::never) << "that of slot 5 is void";
    EXPECT_EQ(memory.remember(7, entry(7, 5)), Seen::limit_reached);
    EXPECT_EQ(memory.size(), 3U);
}

TEST(ReplayCache, ForgetsNothingThatCouldStillBeUsed) {
    ReplayCache memory{100};
    const auto entry = [](int number) {
        return ReplayCache::Entry{static_cast<std::byte>(number)};
    };
    using Seen = ReplayCache::Seen;
    for (std::uint64_t slot = 5; slot < 20; ++slot) {
        memory.advance(slot);
        EXPECT_EQ(memory.remember(slot, entry(static_cast<int>(slot))), Seen::never);
        EXPECT_EQ(memory.remember(slot, entry(static_cast<int>(slot))), Seen::before);
        if (slot > 5) {
            EXPECT_EQ(memory.remember(slot - 1, entry(static_cast<int>(slot - 1))), Seen::before);
        }
        EXPECT_LE(memory.size(), 2U);
    }
    memory.advance(40);
    EXPECT_EQ(memory.size(), 0U);
}

TEST(AuthServer, AClientWithoutAKeyGetsTheRightsForAnyone) {
    TestServer closed{address_a, {key_of(1)}};
    const Message answer = closed.take(hello_of(1), client_host);
    EXPECT_EQ(closed.verdict.outcome, Outcome::challenged);
    EXPECT_EQ(answer.size(), 30U);
    const Key visitor{.id = anyone,
                      .name = "anyone",
                      .secret = {},
                      .rights = parse_rights("services=pubsub fids=1")};
    TestServer open{address_a, {key_of(1), visitor}};
    const Message greeting = open.take(hello_of(1), client_host);
    ASSERT_EQ(open.verdict.outcome, Outcome::admitted);
    EXPECT_EQ(open.verdict.admission->id(), anyone);
    EXPECT_EQ(open.verdict.admission->protection(), Protection::none);
    EXPECT_EQ(greeting.size(), auth_hello_bytes);
    EXPECT_EQ(greeting[auth_flags_at], std::byte{0});
    TestServer strict{address_a, {key_of(1), visitor}, 200, {.min_protection = Protection::peers}};
    strict.take(hello_of(1), client_host);
    EXPECT_EQ(strict.verdict.refusal, Refusal::protection_too_low);
    // The key of unauthenticated clients proves nothing.
    TestClient liar{visitor, address_a};
    open.take(proved_request(liar, open), client_host);
    EXPECT_EQ(open.verdict.refusal, Refusal::unknown_key);
    const Key streams_only{
        .id = anyone, .name = "anyone", .secret = {}, .rights = parse_rights("services=stream")};
    TestServer other{address_a, {streams_only}};
    other.take(hello_of(1), client_host);
    EXPECT_EQ(other.verdict.refusal, Refusal::service_not_permitted);
}

TEST(AuthServer, ARevokedKeyAdmitsNoOne) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server);
    server.gate.use(ring_of({key_of(2)}));
    server.take(request, client_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::unknown_key);
}

TEST(AuthClient, RestartsOnceAfterARestartOfTheServer) {
    TestServer before{address_a, {key_of(1)}, 200};
    TestServer after{address_a, {key_of(1)}, 201};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, before);
    after.take(request, client_host);
    EXPECT_EQ(after.verdict.outcome, Outcome::refused);
    ASSERT_EQ(client.gate.take_refusal(), AuthClient::Next::again);
    const Message second = proved_request(client, after);
    EXPECT_EQ(client.gate.take_answer(after.take(second, client_host)),
              AuthClient::Answer::genuine);
}

TEST(AuthClient, NoServerCanMakeItRetryWithoutEnd) {
    // Every sequence of challenges (true) and refusals.
    for (unsigned sequence = 0; sequence < 256; ++sequence) {
        TestServer server{address_a, {key_of(1)}};
        TestClient client{key_of(1), address_a};
        int attempts = 0;
        for (unsigned step = 0; step < 8; ++step) {
            const Message request = client.request();
            ++attempts;
            const auto next =
                (sequence >> step & 1) != 0
                    ? client.gate.take_challenge(server.take(hello_of(1), client_host))
                    : client.gate.take_refusal();
            if (next == AuthClient::Next::give_up) break;
        }
        EXPECT_LE(attempts, 5) << sequence;
    }
}

TEST(AuthClient, ARejectionWithoutANonceIsNoChallenge) {
    TestClient client{key_of(1), address_a};
    for (std::size_t size = 0; size < auth_challenge_bytes; ++size)
        EXPECT_EQ(TestClient{client}.gate.take_challenge(Message(size)), AuthClient::Next::give_up);
}

TEST(AuthClient, TakesNoAnswerThatItDidNotAskFor) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    EXPECT_EQ(client.gate.take_answer(Message(44)), AuthClient::Answer::unasked);
    static_cast<void>(client.request());
    EXPECT_EQ(client.gate.take_answer(Message(44)), AuthClient::Answer::unasked);
    const Message answer = server.take(proved_request(client, server), client_host);
    for (std::size_t size = 0; size < answer.size(); ++size) {
        TestClient other = client;
        const Message part{answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(size)};
        EXPECT_EQ(other.gate.take_answer(part), AuthClient::Answer::no_proof);
        EXPECT_EQ(other.gate.take_answer(answer), AuthClient::Answer::unasked) << "only one answer";
    }
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::genuine);
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::unasked);
}

TEST(AuthClient, TheCipherIsOneThatBothProcessorsAreGoodAt) {
    for (const bool here : {false, true}) {
        for (const bool there : {false, true}) {
            TestServer server{address_a, {key_of(1)}, 200, {.lacks_aes = there}};
            TestClient client{
                key_of(1), address_a, {.protection = Protection::privacy, .lacks_aes = here}};
            const Message answer = server.take(proved_request(client, server), client_host);
            ASSERT_EQ(client.gate.take_answer(answer), AuthClient::Answer::genuine);
            const Cipher expected = here || there ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm;
            EXPECT_EQ(client.gate.cipher(), expected);
            EXPECT_EQ(server.verdict.admission->cipher(), expected);
        }
    }
}

// --- flag bytes

constexpr std::array levels{Protection::none, Protection::peers, Protection::integrity,
                            Protection::privacy};

TEST(AuthServer, FlagsThatMeanNothingAreMalformed) {
    const Key visitor{
        .id = anyone, .name = "anyone", .secret = {}, .rights = parse_rights("services=pubsub")};
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (decode_flags(static_cast<std::uint8_t>(byte))) continue;
        TestServer server{address_a, {key_of(1), visitor}};
        Message request = hello_of(1);
        request[auth_flags_at] = static_cast<std::byte>(byte);
        request.resize(auth_request_bytes);
        server.take(request, client_host);
        EXPECT_EQ(server.verdict.outcome, Outcome::refused) << byte;
        EXPECT_EQ(server.verdict.refusal, Refusal::malformed) << byte;
    }
}

TEST(AuthServer, MoreProtectionThanThereIsIsRefused) {
    for (const Protection most : levels) {
        for (const Protection asked : levels) {
            TestServer server{address_a, {key_of(1)}, 200, {.most = most}};
            TestClient client{key_of(1), address_a, {.protection = asked}};
            server.take(proved_request(client, server), client_host);
            EXPECT_EQ(server.verdict.outcome == Outcome::admitted, asked <= most);
            EXPECT_EQ(server.verdict.refusal,
                      asked <= most ? Refusal::none : Refusal::protection_not_here);
        }
    }
}

// The answer of a server that has the key, with these flags.
Message answer_with(std::uint8_t flags, const Message& request, const ServerNonce& nonce) {
    Message answer = hello_of(99, 8192);
    answer[auth_flags_at] = std::byte{flags};
    const AuthTranscript transcript{Bytes{request}.first<auth_proof_at>(), nonce, address_a};
    const Proof proof = transcript.server_proof(derive(secret_of(1), Purpose::auth),
                                                Bytes{answer}.first<auth_hello_bytes>());
    answer.insert(answer.end(), proof.begin(), proof.end());
    return answer;
}

void expect_own_terms_only(const AuthClient::Options& options) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a, options};
    const Message challenge = server.take(client.request(), client_host);
    ASSERT_EQ(client.gate.take_challenge(challenge), AuthClient::Next::again);
    ServerNonce nonce;
    std::copy_n(challenge.begin() + auth_rejection_bytes + 2, nonce.size(), nonce.begin());
    const Message request = client.request();
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto flags = decode_flags(static_cast<std::uint8_t>(byte));
        const bool good = flags && flags->has_key && flags->protection == options.protection &&
                          (flags->lacks_aes || !options.lacks_aes);
        TestClient again = client;
        EXPECT_EQ(
            again.gate.take_answer(answer_with(static_cast<std::uint8_t>(byte), request, nonce)),
            good ? AuthClient::Answer::genuine : AuthClient::Answer::other_protection)
            << byte;
        EXPECT_EQ(again.gate.keys().has_value(), good) << byte;
    }
}

// A server with the key must not change what the client requested.
TEST(AuthClient, AcceptsOnlyItsOwnTermsFromAServerWithTheKey) {
    for (const Protection level : levels) {
        for (const bool lacks_aes : {false, true})
            expect_own_terms_only({.protection = level, .lacks_aes = lacks_aes});
    }
}

TEST(AuthClient, TakesThreeChallengesAndNoFourth) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    for (int each = 1; each <= 4; ++each) {
        EXPECT_EQ(client.gate.take_challenge(server.take(hello_of(1), client_host)),
                  each <= 3 ? AuthClient::Next::again : AuthClient::Next::give_up)
            << each;
        EXPECT_EQ(client.gate.take_again(), each <= 3) << each;
        EXPECT_FALSE(client.gate.take_again()) << "once";
    }
}

} // namespace
} // namespace netio::access::auth_test
