// SPDX-License-Identifier: Apache-2.0

// The cost of authentication, and of the protection of a frame: both sides in one thread, without
// sockets.

#include "netio/access/crypto.hpp"
#include "netio/access/frame_seal.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <vector>

namespace {

using namespace netio::access;

// Both attempts and the answer, with all proofs and checks of each side.
void pass_the_gate(benchmark::State& state) {
    TestServer server{address_a, {key_of(7)}};
    std::uint64_t instance = 1;
    for ([[maybe_unused]] const auto step : state) {
        TestClient client{key_of(7), address_a};
        client.instance = ++instance;
        server.now += std::chrono::milliseconds{1}; // the replay cache forgets old entries in time
        const Message answer = server.take(proved_request(client, server), client_host);
        if (client.gate.take_answer(answer) != AuthClient::Answer::genuine)
            state.SkipWithError("it was not admitted");
    }
}
BENCHMARK(pass_the_gate);

// The cost of an unauthenticated peer.
void challenge_a_stranger(benchmark::State& state) {
    TestServer server{address_a, {key_of(7)}};
    TestClient stranger{key_of(8), address_a};
    const Message request = stranger.request();
    for ([[maybe_unused]] const auto step : state) {
        benchmark::DoNotOptimize(server.gate.judge(
            {.data = request, .source = attacker_host, .dialled = address_a}, server.now));
    }
}
BENCHMARK(challenge_a_stranger);

void agree_on_keys(benchmark::State& state) {
    using Side = NoiseHandshake::Side;
    const std::array<std::byte, 200> prologue{};
    const std::array<std::byte, 8> payload{};
    std::array<std::byte, 8> read{};
    std::array<std::byte, 8 + NoiseHandshake::overhead> message{};
    for ([[maybe_unused]] const auto step : state) {
        NoiseHandshake up{Side::initiator, Cipher::aes_256_gcm, prologue, secret_of(1),
                          secret_of(2)};
        NoiseHandshake down{Side::responder, Cipher::aes_256_gcm, prologue, secret_of(1),
                            secret_of(3)};
        up.write(payload, message);
        bool agreed = down.read(message, read);
        down.write(payload, message);
        agreed = up.read(message, read) && agreed;
        if (!agreed) state.SkipWithError("they did not agree");
    }
}
BENCHMARK(agree_on_keys);

void seal(benchmark::State& state, Cipher cipher) {
    Sealer sealer{cipher, secret_of(1)};
    const std::array<std::byte, 8> header{};
    const std::vector<std::byte> plain(static_cast<std::size_t>(state.range(0)));
    std::vector<std::byte> out(plain.size() + seal_tag_bytes);
    for ([[maybe_unused]] const auto step : state)
        benchmark::DoNotOptimize(sealer.seal(header, plain, out));
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(seal, aes, Cipher::aes_256_gcm)->Arg(64)->Arg(65536);
BENCHMARK_CAPTURE(seal, chacha, Cipher::chacha20_poly1305)->Arg(65536);

void tag_in_clear(benchmark::State& state) {
    Sealer sealer{Cipher::aes_256_gcm, secret_of(1)};
    const std::vector<std::byte> plain(static_cast<std::size_t>(state.range(0)));
    const Bytes part{plain};
    std::array<std::byte, seal_tag_bytes> tag{};
    for ([[maybe_unused]] const auto step : state)
        benchmark::DoNotOptimize(sealer.tag({&part, 1}, tag));
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(tag_in_clear)->Arg(65536);

} // namespace
