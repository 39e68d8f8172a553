// SPDX-License-Identifier: Apache-2.0
#pragma once

// Noise NNpsk0 (the Noise Protocol Framework, revision 34): two messages that give both sides
// session keys with forward secrecy, which the pre-shared key alone does not reveal later. The
// primitives are libcrypto's.
//
//     -> psk, e
//     <- e, ee

#include "netio/access/crypto.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace netio::access::inline v0_3 {

// Diffie-Hellman on Curve25519 (RFC 7748).
using PublicKey = std::array<std::byte, 32>;
PublicKey x25519_public(const Secret& own);
// Returns `nullopt` if the peer's key is one of the few that give the same secret with every key.
std::optional<Secret> x25519(const Secret& own, const PublicKey& peer);

class NoiseHandshake {
  public:
    enum class Side { initiator, responder };
    // Bytes of a message beyond its payload.
    static constexpr std::size_t overhead = sizeof(PublicKey) + seal_tag_bytes;

    // `ephemeral` is random and used for this handshake only.
    NoiseHandshake(Side side, Cipher cipher, Bytes prologue, const Secret& psk,
                   const Secret& ephemeral);

    bool may_write() const noexcept;
    bool may_read() const noexcept;
    // Writes this side's message; only if may_write(). `out` has the size of the payload plus
    // `overhead`.
    void write(Bytes payload, std::span<std::byte> out);
    // Reads the peer's message; only if may_read(). Returns false if the peer does not have the key
    // or the message was modified; the handshake has then failed. `payload` has the size of the
    // message minus `overhead`.
    [[nodiscard]] bool read(Bytes message, std::span<std::byte> payload);

    struct Result {
        Secret up;   // key of what the initiator sends
        Secret down; // key of what the responder sends
        Digest hash; // of the whole handshake
    };
    // Set after both messages.
    const std::optional<Result>& result() const noexcept { return result_; }

  private:
    enum class Step { first, second, done, failed };

    bool is_initiator() const noexcept { return side_ == Side::initiator; }
    void mix_hash(Bytes data);
    void mix_key(Bytes input);
    void mix_key_and_hash(Bytes input);
    void mix_public(const PublicKey& key);
    [[nodiscard]] bool mix_shared();
    void advance();

    Side side_;
    Secret ephemeral_;
    PublicKey peer_{};
    Secret chaining_key_;
    Digest hash_{};
    Aead cipher_;
    Step step_ = Step::first;
    std::optional<Result> result_;
};

} // namespace netio::access::inline v0_3
