// SPDX-License-Identifier: Apache-2.0
#include "netio/access/noise_handshake.hpp"

#include "netio/base/check.hpp"

#include <algorithm>

namespace netio::access::inline v0_2 {
namespace {

// Shorter names are filled up with zeros, longer ones hashed.
Digest first_hash(Cipher cipher) {
    const Bytes name =
        as_bytes(cipher == Cipher::aes_256_gcm ? "Noise_NNpsk0_25519_AESGCM_SHA256"
                                               : "Noise_NNpsk0_25519_ChaChaPoly_SHA256");
    if (name.size() > digest_bytes) return sha256({name});
    Digest hash{};
    std::ranges::copy(name, hash.begin());
    return hash;
}

} // namespace

NoiseHandshake::NoiseHandshake(Side side, Cipher cipher, Bytes prologue, const Secret& psk,
                               const Secret& ephemeral)
    : side_{side}, ephemeral_{ephemeral}, hash_{first_hash(cipher)}, cipher_{cipher, Secret{}} {
    chaining_key_ = Secret{hash_};
    mix_hash(prologue);
    mix_key_and_hash(psk.bytes()); // the first token of the first message, on both sides
}

bool NoiseHandshake::may_write() const noexcept {
    return step_ == (is_initiator() ? Step::first : Step::second);
}

bool NoiseHandshake::may_read() const noexcept {
    return step_ == (is_initiator() ? Step::second : Step::first);
}

void NoiseHandshake::write(Bytes payload, std::span<std::byte> out) {
    NETIO_CHECK(may_write() && out.size() == payload.size() + overhead);
    const PublicKey own = x25519_public(ephemeral_);
    std::ranges::copy(own, out.begin());
    mix_public(own);
    if (step_ == Step::second && !mix_shared()) {
        // The initiator chose its key so that there is no secret; it will not understand this.
        std::ranges::fill(out, std::byte{0});
        step_ = Step::failed;
        return;
    }
    const auto sealed = out.subspan(own.size());
    const Bytes associated{hash_};
    cipher_.seal(0, {&associated, 1}, {&payload, 1}, sealed);
    mix_hash(sealed);
    advance();
}

bool NoiseHandshake::read(Bytes message, std::span<std::byte> payload) {
    NETIO_CHECK(may_read());
    const bool second = step_ == Step::second;
    step_ = Step::failed;
    if (message.size() < overhead) return false;
    NETIO_CHECK(payload.size() == message.size() - overhead);
    std::copy_n(message.begin(), peer_.size(), peer_.begin());
    mix_public(peer_);
    if (second && !mix_shared()) return false;
    const Bytes sealed = message.subspan(peer_.size());
    const Bytes associated{hash_};
    if (!cipher_.open(0, {&associated, 1}, sealed, payload)) return false;
    mix_hash(sealed);
    step_ = second ? Step::second : Step::first;
    advance();
    return true;
}

void NoiseHandshake::mix_hash(Bytes data) {
    hash_ = sha256({hash_, data});
}

void NoiseHandshake::mix_key(Bytes input) {
    auto [chaining_key, key] = hkdf(chaining_key_, input);
    chaining_key_ = chaining_key;
    cipher_ = Aead{cipher_.cipher(), key};
}

void NoiseHandshake::mix_key_and_hash(Bytes input) {
    Secret key;
    auto [chaining_key, hash] = hkdf(chaining_key_, input, &key);
    chaining_key_ = chaining_key;
    mix_hash(hash.bytes());
    cipher_ = Aead{cipher_.cipher(), key};
}

// Where there is a pre-shared key, a public key is mixed into both.
void NoiseHandshake::mix_public(const PublicKey& key) {
    mix_hash(key);
    mix_key(key);
}

bool NoiseHandshake::mix_shared() {
    const auto shared = x25519(ephemeral_, peer_);
    if (shared) mix_key(shared->bytes());
    return shared.has_value();
}

void NoiseHandshake::advance() {
    if (step_ == Step::first) {
        step_ = Step::second;
        return;
    }
    step_ = Step::done;
    const auto [up, down] = hkdf(chaining_key_, {});
    result_.emplace(Result{.up = up, .down = down, .hash = hash_});
    chaining_key_ = Secret{};
    ephemeral_ = Secret{};
}

} // namespace netio::access::inline v0_2
