// SPDX-License-Identifier: Apache-2.0
#pragma once

// Clients and servers that authenticate; the test transfers the bytes between them.

#include "netio/access/auth.hpp"
#include "netio/access/rights.hpp"
#include "netio/session/handshake.hpp"

#include <algorithm>
#include <vector>

namespace netio::access {

using Message = std::vector<std::byte>;
using Outcome = AuthServer::Verdict::Outcome;

inline Secret secret_of(int seed) {
    std::array<std::byte, secret_bytes> bytes{};
    for (std::size_t at = 0; at < bytes.size(); ++at)
        bytes[at] = static_cast<std::byte>(seed * 37 + static_cast<int>(at));
    return Secret{bytes};
}

inline Key key_of(int id, const std::string& rights = "services=pubsub") {
    return {.id = static_cast<KeyId>(id),
            .name = "key" + std::to_string(id),
            .secret = secret_of(id),
            .rights = parse_rights(rights)};
}

inline KeyRing ring_of(const std::vector<Key>& keys) {
    KeyRing ring;
    for (const Key& key : keys)
        ring.add(key);
    return ring;
}

inline Host host_of(unsigned last) {
    const std::array<std::byte, 4> bytes{std::byte{10}, std::byte{0}, std::byte{0},
                                         static_cast<std::byte>(last)};
    return host_of_ipv4(bytes);
}

inline Message hello_of(std::uint64_t instance, std::uint32_t receive_buffer_bytes = 4096) {
    Hello hello{.service = Service::publish_subscribe,
                .receive_buffer_bytes = receive_buffer_bytes,
                .receive_count = 8,
                .heartbeat_ms = 500,
                .instance = instance,
                .service_data = {}};
    hello.service_data.size = 4;
    ConnectionData data;
    const std::size_t size = encode(hello, data);
    return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
}

inline Message rejection_of(RejectCode code, Bytes behind = {}) {
    ConnectionData data;
    const std::size_t size = encode(Rejection{.code = code}, data);
    Message message{data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    message.insert(message.end(), behind.begin(), behind.end());
    return message;
}

inline constexpr auto code_challenge = static_cast<RejectCode>(8);
inline constexpr auto code_not_admitted = static_cast<RejectCode>(9);

struct TestClient {
    Key key;
    AuthClient gate;
    std::uint64_t instance = 77;
    int requests = 0;

    TestClient(const Key& its_key, const AuthAddress& dialled, AuthClient::Options options = {})
        : key{its_key}, gate{its_key, options, dialled} {}

    Message request() {
        std::array<std::byte, auth_request_bytes> data{};
        std::ranges::copy(hello_of(instance), data.begin());
        ClientNonce nonce{};
        nonce[0] = static_cast<std::byte>(++requests);
        nonce[6] = static_cast<std::byte>(key.id);
        const std::size_t size = gate.request(data, nonce);
        return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    }
};

struct TestServer {
    AuthAddress address;
    AuthServer gate;
    TimePoint now{std::chrono::hours{1}};
    AuthServer::Verdict verdict{}; // of the last request
    std::optional<AuthKeys> keys;

    TestServer(const AuthAddress& its_address, const std::vector<Key>& ring, int boot = 200,
               const AuthServer::Options& options = {})
        : address{its_address}, gate{secret_of(boot), options} {
        gate.use(ring_of(ring));
    }

    // Returns the answer to a request.
    Message take(const Message& request, const Host& source) {
        verdict = gate.judge({.data = request, .source = source, .dialled = address}, now);
        keys.reset();
        switch (verdict.outcome) {
        case Outcome::challenged:
            return rejection_of(code_challenge, verdict.challenge);
        case Outcome::refused:
            return rejection_of(code_not_admitted);
        case Outcome::busy:
            return rejection_of(RejectCode::full);
        case Outcome::admitted:
            break;
        }
        std::array<std::byte, auth_answer_bytes> data{};
        std::ranges::copy(hello_of(99, 8192), data.begin());
        const std::size_t size = verdict.admission->answer(data);
        if (size == auth_answer_bytes) keys = verdict.admission->keys(data);
        return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    }
};

inline const AuthAddress address_a{.host = host_of(1), .port = 12345};
inline const AuthAddress address_b{.host = host_of(2), .port = 12345};
inline const Host client_host = host_of(10);
inline const Host attacker_host = host_of(66);

// Up to the second request, which is returned.
inline Message proved_request(TestClient& client, TestServer& server,
                              const Host& source = client_host) {
    const Message rejection = server.take(client.request(), source);
    static_cast<void>(client.gate.take_challenge(rejection));
    return client.request();
}

} // namespace netio::access
