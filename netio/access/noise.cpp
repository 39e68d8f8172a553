// SPDX-License-Identifier: Apache-2.0
#include "netio/access/noise.hpp"

#include "netio/access/openssl_bytes.hpp"
#include "netio/base/check.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

namespace netio::access::inline v0_3 {
namespace {

using PKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;

PKey private_key(const Secret& own) {
    PKey key{::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, raw(own.bytes().data()),
                                            own.bytes().size())};
    NETIO_CHECK_MSG(key, "libcrypto has no X25519");
    return key;
}

} // namespace

PublicKey x25519_public(const Secret& own) {
    const PKey key = private_key(own);
    PublicKey bytes{};
    std::size_t size = bytes.size();
    NETIO_CHECK(::EVP_PKEY_get_raw_public_key(key.get(), raw(bytes.data()), &size) == 1);
    return bytes;
}

std::optional<Secret> x25519(const Secret& own, const PublicKey& peer) {
    const PKey mine = private_key(own);
    const PKey theirs{::EVP_PKEY_new_raw_public_key(
        EVP_PKEY_X25519, nullptr, reinterpret_cast<const unsigned char*>(peer.data()),
        peer.size())};
    const Context context{::EVP_PKEY_CTX_new(mine.get(), nullptr)};
    NETIO_CHECK(theirs && context && ::EVP_PKEY_derive_init(context.get()) == 1);
    std::array<std::byte, secret_bytes> shared{};
    std::size_t size = shared.size();
    const bool good = ::EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
                      ::EVP_PKEY_derive(context.get(), raw(shared.data()), &size) == 1;
    std::optional<Secret> secret;
    if (good && size == shared.size()) secret.emplace(shared);
    wipe(shared);
    return secret;
}

namespace {

// A name of at most 32 bytes is padded with zeros, a longer one is hashed.
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
    mix_key_and_hash(psk.bytes()); // both sides: the first token of the first message
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
        // The initiator chose a key without a shared secret; send a message that it cannot read.
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

// With a pre-shared key, a public key is mixed into both hash and key.
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

} // namespace netio::access::inline v0_3
