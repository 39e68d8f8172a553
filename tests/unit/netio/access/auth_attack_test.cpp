// SPDX-License-Identifier: Apache-2.0

// Attacks on the authentication, and their results. docs/security.md refers to these tests by name.

#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <set>

namespace netio::access::auth_attack_test {
namespace {

const AuthAddress attacker_address{.host = attacker_host, .port = 12345};

TEST(AuthAttack, ReflectionAServersProofIsNoClientsProofAndTheOtherWayRound) {
    // Both sides have the same key, and play both roles.
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server);
    const Message answer = server.take(request, client_host);
    // The server's proof in place of the client's proof.
    Message reflected = request;
    std::copy_n(answer.begin() + 28, 16, reflected.begin() + auth_proof_at);
    reflected[auth_nonce_at] ^= std::byte{1}; // otherwise it would be a replay
    server.take(reflected, client_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::wrong_proof);
    // The client's own proof, and its whole request, as the answer.
    Message own = answer;
    std::copy_n(request.begin() + auth_proof_at, 16, own.begin() + 28);
    EXPECT_EQ(TestClient{client}.gate.take_answer(own), AuthClient::Answer::wrong_proof);
    EXPECT_EQ(TestClient{client}.gate.take_answer(request), AuthClient::Answer::wrong_proof);
}

TEST(AuthAttack, ReplayWithinTheSlotIsRemembered) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server);
    server.take(request, client_host);
    ASSERT_EQ(server.verdict.outcome, Outcome::admitted);
    for (int second = 0; second < 40; ++second) {
        server.take(request, client_host);
        EXPECT_EQ(server.verdict.outcome, Outcome::refused) << second << " s later";
        server.now += std::chrono::seconds{1};
    }
}

TEST(AuthAttack, ReplayAfterARestartMeetsAnotherSecret) {
    TestServer server{address_a, {key_of(1)}, 200};
    TestServer restarted{address_a, {key_of(1)}, 201};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server);
    restarted.take(request, client_host);
    EXPECT_EQ(restarted.verdict.refusal, Refusal::wrong_proof);
}

TEST(AuthAttack, AnAnswerOfAnEarlierConnectionIsNoAnswerToThisOne) {
    TestServer server{address_a, {key_of(1)}};
    TestClient earlier{key_of(1), address_a};
    const Message old = server.take(proved_request(earlier, server), client_host);
    TestClient client{key_of(1), address_a};
    client.requests = 5;
    static_cast<void>(proved_request(client, server));
    EXPECT_EQ(client.gate.take_answer(old), AuthClient::Answer::wrong_proof);
}

TEST(AuthAttack, ARequestFromAnotherHostIsNotAdmitted) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server, client_host);
    server.take(request, attacker_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::wrong_proof);
}

TEST(AuthAttack, RelayWhoDialsTheAttackerIsNotTakenToTheServer) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), attacker_address};
    // The attacker forwards everything that it receives, from its own host.
    const Message request = proved_request(client, server, attacker_host);
    server.take(request, attacker_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::wrong_proof);
}

TEST(AuthAttack, RelayOnThePathIsNotDetectedByAuthentication) {
    // The attacker uses the server's address, and the server sees the client's host: only
    // `integrity` and `privacy` protect against this, because the attacker has no session key.
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    const Message answer =
        server.take(proved_request(client, server, attacker_host), attacker_host);
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::genuine);
}

TEST(AuthAttack, AnAddressTranslatorHasToBeConfigured) {
    TestServer inside{address_b, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    inside.take(proved_request(client, inside), client_host);
    EXPECT_EQ(inside.verdict.refusal, Refusal::wrong_proof);
    TestServer told{address_a, {key_of(1)}}; // the address that its clients dial
    TestClient other{key_of(1), address_a};
    told.take(proved_request(other, told), client_host);
    EXPECT_EQ(told.verdict.outcome, Outcome::admitted);
}

TEST(AuthAttack, DowngradeOfTheProtectionIsNoticedByEitherSide) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        TestServer server{address_a, {key_of(1)}};
        TestClient client{key_of(1), address_a, {.protection = Protection::privacy}};
        Message request = proved_request(client, server);
        const auto flags = static_cast<std::byte>(byte);
        if (request[auth_flags_at] == flags) continue;
        const Message genuine = server.take(request, client_host);
        Message answer = genuine;
        answer[auth_flags_at] = flags;
        EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::wrong_proof) << byte;
        request[auth_flags_at] = flags;
        server.take(request, client_host);
        EXPECT_NE(server.verdict.outcome, Outcome::admitted) << byte;
    }
}

TEST(AuthAttack, DowngradeByAServerThatHasTheKeyIsRefusedToo) {
    // This server signs anything; the client has requested privacy and accepts nothing weaker.
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a, {.protection = Protection::privacy}};
    const Message request = proved_request(client, server);
    for (const AuthFlags flags : {AuthFlags{.has_key = true, .protection = Protection::integrity},
                                  AuthFlags{.has_key = true}, AuthFlags{}}) {
        TestClient copy = client;
        ServerNonce nonce;
        // The challenge that the client has answered.
        const Message same = server.take(TestClient{key_of(1), address_a}.request(), client_host);
        std::copy_n(same.begin() + 14, nonce.size(), nonce.begin());
        const AuthTranscript transcript{Bytes{request}.first<auth_proof_at>(), nonce, address_a};
        const AuthResult admission{key_of(1), flags, transcript};
        std::array<std::byte, auth_answer_bytes> answer{};
        std::ranges::copy(hello_of(99), answer.begin());
        static_cast<void>(admission.answer(answer));
        EXPECT_EQ(copy.gate.take_answer(answer), AuthClient::Answer::other_protection);
        EXPECT_FALSE(copy.gate.keys());
    }
}

TEST(AuthAttack, DowngradeToNoKeyAtAllGetsNoSession) {
    const Key visitor{
        .id = anyone, .name = "anyone", .secret = {}, .rights = parse_rights("services=pubsub")};
    TestServer server{address_a, {key_of(1), visitor}};
    TestClient client{key_of(1), address_a};
    Message request = client.request();
    request[auth_flags_at] = std::byte{0}; // changed on the way
    const Message answer = server.take(request, client_host);
    EXPECT_EQ(server.verdict.outcome, Outcome::admitted) << "as an unauthenticated client";
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::unasked);
}

TEST(AuthAttack, UnknownKeyShareIsRefused) {
    // The attacker has key 2, and the messages of the client.
    TestServer server{address_a, {key_of(1), key_of(2)}};
    TestClient client{key_of(1), address_a};
    const Message request = proved_request(client, server);
    Message renamed = request;
    renamed[auth_id_at] = std::byte{2};
    server.take(renamed, client_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::wrong_proof);
    // Its own proof with the client's key id.
    TestClient attacker{key_of(2), address_a};
    Message signed_by_two = proved_request(attacker, server);
    signed_by_two[auth_id_at] = std::byte{1};
    server.take(signed_by_two, client_host);
    EXPECT_EQ(server.verdict.refusal, Refusal::wrong_proof);
    // The client does not accept the server's answer to the attacker.
    TestClient insider{key_of(2), address_a};
    const Message to_insider = server.take(proved_request(insider, server), client_host);
    ASSERT_EQ(server.verdict.outcome, Outcome::admitted);
    EXPECT_EQ(client.gate.take_answer(to_insider), AuthClient::Answer::wrong_proof);
}

TEST(AuthAttack, APublisherCannotPoseAsAnotherWithoutItsClientsKey) {
    TestServer other{address_a, {key_of(2)}}; // at the address that the client dialled
    TestClient client{key_of(1), address_a};
    other.take(proved_request(client, other), client_host);
    EXPECT_EQ(other.verdict.outcome, Outcome::refused);
    // It accepts nevertheless, with the best proof that it can make.
    Key guess = key_of(2);
    guess.id = 1;
    TestServer liar{address_a, {guess}};
    TestClient insider{guess, address_a};
    const Message answer = liar.take(proved_request(insider, liar), client_host);
    ASSERT_EQ(liar.verdict.outcome, Outcome::admitted);
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::wrong_proof);
}

TEST(AuthAttack, APublisherCannotPassItsClientsProofOnToAnother) {
    // Both servers know the key, and the client has dialled B: its proof is valid for B only.
    TestServer other{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_b};
    other.take(proved_request(client, other), client_host);
    EXPECT_EQ(other.verdict.refusal, Refusal::wrong_proof);
}

TEST(AuthAttack, APublisherThatHasTheSameKeyCanPoseAsTheOtherAtItsAddress) {
    // A secret known to two servers only proves that the peer is one of them. If publishers do not
    // trust each other, a client needs a key for each.
    TestServer real{address_a, {key_of(1)}};
    TestServer false_one{address_a, {key_of(1)}, 201};
    TestClient client{key_of(1), address_a};
    const Message answer = false_one.take(proved_request(client, false_one), client_host);
    EXPECT_EQ(client.gate.take_answer(answer), AuthClient::Answer::genuine);
}

TEST(AuthAttack, AnswersDoNotRevealWhichKeysExist) {
    TestServer server{address_a, {key_of(1)}};
    std::set<Message> answers;
    for (int id = 0; id < 256; ++id) {
        Key key = key_of(5);
        key.id = static_cast<KeyId>(id);
        TestClient stranger{key, address_a};
        const Message challenge = server.take(stranger.request(), attacker_host);
        EXPECT_EQ(server.verdict.outcome, Outcome::challenged);
        static_cast<void>(stranger.gate.take_challenge(challenge));
        answers.insert(server.take(stranger.request(), attacker_host));
        EXPECT_EQ(server.verdict.outcome, Outcome::refused);
    }
    EXPECT_EQ(answers.size(), 1U);
}

TEST(AuthAttack, AFloodOfRequestsUsesNoMemory) {
    TestServer server{address_a, {key_of(1)}, 200, {.proofs_per_key = 1}};
    for (unsigned each = 0; each < 1000; ++each) {
        TestClient stranger{key_of(2), address_a};
        stranger.instance = each;
        server.take(proved_request(stranger, server), host_of(each % 250));
        EXPECT_EQ(server.verdict.outcome, Outcome::refused);
    }
    TestClient client{key_of(1), address_a};
    server.take(proved_request(client, server), client_host);
    EXPECT_EQ(server.verdict.outcome, Outcome::admitted) << "the only place is still free";
}

} // namespace
} // namespace netio::access::auth_attack_test
