// SPDX-License-Identifier: Apache-2.0

// What the flag bytes of either side may say at the gate, and how often a client is asked.

#include "netio/access/digest.hpp"
#include "tests/unit/netio/access/gate_fixture.hpp"

#include <gtest/gtest.h>

namespace netio::access {
namespace {

constexpr std::array levels{Protection::none, Protection::peers, Protection::integrity,
                            Protection::privacy};

TEST(Gate, FlagsThatMeanNothingAreMalformed) {
    const Key visitor{
        .id = anyone, .name = "anyone", .secret = {}, .rights = parse_rights("services=pubsub")};
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (decode_flags(static_cast<std::uint8_t>(byte))) continue;
        TestServer server{address_a, {key_of(1), visitor}};
        Message request = hello_of(1);
        request[gate_flags_at] = static_cast<std::byte>(byte);
        request.resize(gate_request_bytes);
        server.take(request, client_host);
        EXPECT_EQ(server.verdict.outcome, Outcome::refused) << byte;
        EXPECT_EQ(server.verdict.refusal, Refusal::malformed) << byte;
    }
}

TEST(Gate, MoreProtectionThanThereIsIsRefused) {
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

// What a server says that has the key, with flags that it likes.
Message answer_with(std::uint8_t flags, const Message& request, const ServerNonce& nonce) {
    Message answer = hello_of(99, 8192);
    answer[gate_flags_at] = std::byte{flags};
    const GateTranscript transcript{Bytes{request}.first<gate_proof_at>(), nonce, address_a};
    const Proof proof = transcript.server_proof(derive(secret_of(1), Purpose::gate),
                                                Bytes{answer}.first<gate_hello_bytes>());
    answer.insert(answer.end(), proof.begin(), proof.end());
    return answer;
}

void expect_own_terms_only(const GateClient::Options& options) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a, options};
    const Message challenge = server.take(client.request(), client_host);
    ASSERT_EQ(client.gate.take_challenge(challenge), GateClient::Next::again);
    ServerNonce nonce;
    std::copy_n(challenge.begin() + gate_rejection_bytes + 2, nonce.size(), nonce.begin());
    const Message request = client.request();
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto flags = decode_flags(static_cast<std::uint8_t>(byte));
        const bool good = flags && flags->has_key && flags->protection == options.protection &&
                          (flags->lacks_aes || !options.lacks_aes);
        TestClient again = client;
        EXPECT_EQ(
            again.gate.take_answer(answer_with(static_cast<std::uint8_t>(byte), request, nonce)),
            good ? GateClient::Answer::genuine : GateClient::Answer::other_protection)
            << byte;
        EXPECT_EQ(again.gate.keys().has_value(), good) << byte;
    }
}

// A server that was let have the key is not let change what was asked for.
TEST(GateClient, TakesItsOwnTermsAndNoOthersFromWhoHasTheKey) {
    for (const Protection level : levels) {
        for (const bool lacks_aes : {false, true})
            expect_own_terms_only({.protection = level, .lacks_aes = lacks_aes});
    }
}

TEST(GateClient, TakesThreeChallengesAndNoFourth) {
    TestServer server{address_a, {key_of(1)}};
    TestClient client{key_of(1), address_a};
    for (int each = 1; each <= 4; ++each) {
        EXPECT_EQ(client.gate.take_challenge(server.take(hello_of(1), client_host)),
                  each <= 3 ? GateClient::Next::again : GateClient::Next::give_up)
            << each;
        EXPECT_EQ(client.gate.take_again(), each <= 3) << each;
        EXPECT_FALSE(client.gate.take_again()) << "once";
    }
}

} // namespace
} // namespace netio::access
