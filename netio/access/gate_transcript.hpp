// SPDX-License-Identifier: Apache-2.0
#pragma once

// What travels through the gate, before there is an endpoint for the peer (docs/wire-formats.md,
// "The gate"), and what both sides compute of it:
//
//     request, first   28 hello and the service's data | 1 key id | 1 kind 0
//     challenge        12 rejection | 2 time slot | 16 the server's nonce
//     request, second  28 hello and the service's data | 1 key id | 1 kind 1 | 2 time slot
//                      | 7 the client's nonce | 16 the client's proof
//     answer           28 hello and the service's data | 16 the server's proof
//
// The client's proof covers all before it, the server's nonce and the address that was dialled; the
// server's proof covers the answer, and all that the client's does. Both begin with a label of
// their own, so neither can stand for the other.

#include "netio/access/host.hpp"
#include "netio/access/protection.hpp"
#include "netio/access/secret.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace netio::access::inline v0_2 {

// Of the hello, with the service's data behind it.
inline constexpr std::size_t gate_hello_bytes = 28;
inline constexpr std::size_t gate_service_at = 6;
inline constexpr std::size_t gate_flags_at = 7;
inline constexpr std::size_t gate_instance_at = 16;

inline constexpr std::size_t gate_id_at = gate_hello_bytes;
inline constexpr std::size_t gate_kind_at = 29;
inline constexpr std::size_t gate_first_bytes = 30;
inline constexpr std::size_t gate_slot_at = 30;
inline constexpr std::size_t gate_nonce_at = 32;
inline constexpr std::size_t gate_proof_at = 39;
inline constexpr std::size_t gate_proof_bytes = 16;
inline constexpr std::size_t gate_request_bytes = gate_proof_at + gate_proof_bytes;
inline constexpr std::size_t gate_answer_bytes = gate_hello_bytes + gate_proof_bytes;
static_assert(gate_request_bytes == 55 && gate_answer_bytes == 44);

inline constexpr std::size_t gate_rejection_bytes = 12;
inline constexpr std::size_t server_nonce_bytes = 16;
inline constexpr std::size_t gate_challenge_bytes = gate_rejection_bytes + 2 + server_nonce_bytes;
static_assert(gate_challenge_bytes == 30);

enum class RequestKind : std::uint8_t { first = 0, second = 1 };

using ClientNonce = std::array<std::byte, gate_proof_at - gate_nonce_at>;
using ServerNonce = std::array<std::byte, server_nonce_bytes>;
using Proof = std::array<std::byte, gate_proof_bytes>;

// What a session's protection is made of, equal on both sides and of this connection only.
struct GateKeys {
    Secret tags_up;   // of what the client sends
    Secret tags_down; // of what the server sends
    Secret psk;       // of the Noise handshake, the same for all connections of the key
    // Both requests' and answers' bytes: the prologue of the Noise handshake.
    std::array<std::byte, gate_request_bytes + server_nonce_bytes + 18 + gate_answer_bytes>
        prologue{};
};

// The conversation as one side knows it once it has the second request.
class GateTranscript {
  public:
    // Of the request all but the proof counts.
    GateTranscript(std::span<const std::byte, gate_proof_at> request, const ServerNonce& nonce,
                   const GateAddress& dialled) noexcept;

    Proof client_proof(const Secret& gate_key) const;
    Proof server_proof(const Secret& gate_key,
                       std::span<const std::byte, gate_hello_bytes> answer) const;
    GateKeys keys(const Secret& secret, std::span<const std::byte, gate_hello_bytes> answer) const;

  private:
    std::array<std::byte, gate_proof_at> request_{};
    ServerNonce nonce_;
    std::array<std::byte, 18> dialled_{};
};

} // namespace netio::access::inline v0_2
