// SPDX-License-Identifier: Apache-2.0
#pragma once

// Noise NNpsk0 (the Noise Protocol Framework, revision 34): two messages, after which both sides
// have keys that nobody gets hold of later, not even with the pre-shared key. The primitives are
// libcrypto's.
//
//     -> psk, e
//     <- e, ee

#include "netio/access/aead.hpp"
#include "netio/access/digest.hpp"
#include "netio/access/x25519.hpp"

#include <cstdint>
#include <optional>

namespace netio::access::inline v0_2 {

class NoiseHandshake {
  public:
    enum class Side { initiator, responder };
    // By which a message is longer than its payload.
    static constexpr std::size_t overhead = sizeof(PublicKey) + seal_tag_bytes;

    // `ephemeral` is random, and of this handshake only.
    NoiseHandshake(Side side, Cipher cipher, Bytes prologue, const Secret& psk,
                   const Secret& ephemeral);

    bool may_write() const noexcept;
    bool may_read() const noexcept;
    // If it may: this side's message. `out` has the size of the payload and the overhead.
    void write(Bytes payload, std::span<std::byte> out);
    // If it may: the peer's. False: it is not from who has the key, or is damaged; it is over then.
    // `payload` has the size of the message without the overhead.
    [[nodiscard]] bool read(Bytes message, std::span<std::byte> payload);

    struct Result {
        Secret up;   // of what the initiator sends
        Secret down; // of what the responder sends
        Digest hash; // of all that was said
    };
    // After both messages.
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

} // namespace netio::access::inline v0_2
