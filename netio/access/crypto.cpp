// SPDX-License-Identifier: Apache-2.0
#include "netio/access/crypto.hpp"

#include "netio/base/check.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <system_error>

namespace netio::access::inline v0_3 {

// Bytes and objects of OpenSSL. For source files only: no header of this library includes
// OpenSSL's.

// The deleter of a std::unique_ptr: Free<EVP_PKEY_free>.
template <auto free_it>
struct Free {
    template <typename Object>
    void operator()(Object* object) const noexcept {
        free_it(object);
    }
};

inline unsigned char* raw(std::byte* bytes) noexcept {
    return reinterpret_cast<unsigned char*>(bytes);
}
inline const unsigned char* raw(const std::byte* bytes) noexcept {
    return reinterpret_cast<const unsigned char*>(bytes);
}

namespace {

constexpr std::string_view prefix = "nk1-";
constexpr std::size_t check_bytes = 4;
constexpr std::size_t text_bytes = prefix.size() + 2 * (secret_bytes + check_bytes);

Digest check_of(Bytes secret) {
    return sha256({as_bytes("netio key checksum 1"), secret});
}

void append_hex(std::string& text, Bytes bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (const std::byte byte : bytes) {
        text += digits[std::to_integer<std::size_t>(byte >> 4)];
        text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
}

// Returns -1 for any other character. Lower case only, so that a secret has one text form.
int digit(char each) {
    if (each >= '0' && each <= '9') return each - '0';
    return each >= 'a' && each <= 'f' ? each - 'a' + 10 : -1;
}

bool read_hex(std::string_view text, std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const int high = digit(text[2 * at]);
        const int low = digit(text[2 * at + 1]);
        if (high < 0 || low < 0) return false;
        bytes[at] = static_cast<std::byte>(high * 16 + low);
    }
    return true;
}

} // namespace

Secret::Secret(std::span<const std::byte, secret_bytes> bytes) noexcept {
    std::ranges::copy(bytes, bytes_.begin());
}

Secret::~Secret() {
    wipe(bytes_);
}

Secret Secret::random() {
    Secret secret;
    fill_randomly(secret.bytes_);
    return secret;
}

std::optional<Secret> Secret::parse(std::string_view text) {
    if (text.size() != text_bytes || !text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    Secret secret;
    std::array<std::byte, check_bytes> check{};
    if (!read_hex(text, secret.bytes_) || !read_hex(text.substr(2 * secret_bytes), check))
        return std::nullopt;
    const Digest expected = check_of(secret.bytes_);
    if (!same_bytes(check, Bytes{expected}.first(check_bytes))) return std::nullopt;
    return secret;
}

std::string Secret::text() const {
    std::string text{prefix};
    text.reserve(text_bytes);
    append_hex(text, bytes_);
    append_hex(text, Bytes{check_of(bytes_)}.first(check_bytes));
    return text;
}

std::string Secret::fingerprint() const {
    std::string text;
    append_hex(text, Bytes{sha256({as_bytes("netio key fingerprint 1"), bytes_})}.first(4));
    return text;
}

bool operator==(const Secret& one, const Secret& other) noexcept {
    return same_bytes(one.bytes_, other.bytes_);
}

bool same_bytes(Bytes one, Bytes other) noexcept {
    return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

void wipe(std::span<std::byte> bytes) noexcept {
    OPENSSL_cleanse(bytes.data(), bytes.size());
}

void fill_randomly(std::span<std::byte> bytes) {
    const int done = ::RAND_bytes(raw(bytes.data()), static_cast<int>(bytes.size()));
    if (done != 1) {
        throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again),
                                "the system gives no random bytes"};
    }
}

namespace {

using DigestContext = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, Free<EVP_MAC_CTX_free>>;

// Looked up once, because the lookup costs more than a digest.
const EVP_MD* sha256_algorithm() {
    static EVP_MD* const algorithm = ::EVP_MD_fetch(nullptr, "SHA256", nullptr);
    NETIO_CHECK_MSG(algorithm != nullptr, "libcrypto has no SHA-256");
    return algorithm;
}

// A context with its digest but without a key, to be copied.
const EVP_MAC_CTX* hmac_without_key() {
    static EVP_MAC_CTX* const context = [] {
        char name[] = "SHA256";
        const OSSL_PARAM parameters[] = {
            ::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
            ::OSSL_PARAM_construct_end()};
        EVP_MAC* const algorithm = ::EVP_MAC_fetch(nullptr, "HMAC", nullptr);
        EVP_MAC_CTX* const fresh = ::EVP_MAC_CTX_new(algorithm);
        NETIO_CHECK_MSG(fresh != nullptr && ::EVP_MAC_CTX_set_params(fresh, parameters) == 1,
                        "libcrypto has no HMAC");
        ::EVP_MAC_free(algorithm);
        return fresh;
    }();
    return context;
}

Secret as_secret(Digest& digest) {
    const Secret secret{digest};
    wipe(digest);
    return secret;
}

std::string_view label_of(Purpose purpose) {
    switch (purpose) {
    case Purpose::auth:
        return "netio gate key 1";
    case Purpose::tag:
        return "netio tag key 1";
    case Purpose::psk:
        return "netio noise psk 1";
    }
    NETIO_CHECK_MSG(false, "no such purpose");
    return {};
}

} // namespace

Bytes as_bytes(std::string_view text) noexcept {
    return std::as_bytes(std::span{text});
}

// libcrypto fails here only if memory is exhausted.
Digest sha256(std::initializer_list<Bytes> parts) {
    const DigestContext context{::EVP_MD_CTX_new()};
    NETIO_CHECK(context && ::EVP_DigestInit_ex2(context.get(), sha256_algorithm(), nullptr) == 1);
    for (const Bytes part : parts)
        NETIO_CHECK(::EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1);
    Digest digest{};
    NETIO_CHECK(::EVP_DigestFinal_ex(context.get(), raw(digest.data()), nullptr) == 1);
    return digest;
}

Digest hmac_sha256(Bytes key, std::span<const Bytes> parts) {
    const MacContext context{::EVP_MAC_CTX_dup(hmac_without_key())};
    // libcrypto interprets a null pointer as "keep the previous key".
    static constexpr std::byte none{};
    const std::byte* const begin = key.empty() ? &none : key.data();
    NETIO_CHECK(context && ::EVP_MAC_init(context.get(), raw(begin), key.size(), nullptr) == 1);
    for (const Bytes part : parts)
        NETIO_CHECK(::EVP_MAC_update(context.get(), raw(part.data()), part.size()) == 1);
    Digest digest{};
    std::size_t size = 0;
    NETIO_CHECK(::EVP_MAC_final(context.get(), raw(digest.data()), &size, digest.size()) == 1 &&
                size == digest.size());
    return digest;
}

std::pair<Secret, Secret> hkdf(const Secret& chaining_key, Bytes input, Secret* third) {
    const std::byte one{1};
    const std::byte two{2};
    const std::byte three{3};
    Digest extracted = hmac_sha256(chaining_key.bytes(), {input});
    Digest first = hmac_sha256(extracted, {{&one, 1}});
    Digest second = hmac_sha256(extracted, {first, {&two, 1}});
    if (third != nullptr) {
        Digest last = hmac_sha256(extracted, {second, {&three, 1}});
        *third = as_secret(last);
    }
    wipe(extracted);
    return {as_secret(first), as_secret(second)};
}

Secret derive(const Secret& secret, Purpose purpose) {
    const std::array<std::byte, digest_bytes> no_salt{};
    const std::byte one{1};
    Digest extracted = hmac_sha256(no_salt, {secret.bytes()});
    Digest key = hmac_sha256(extracted, {as_bytes(label_of(purpose)), {&one, 1}});
    wipe(extracted);
    return as_secret(key);
}

namespace {

const EVP_CIPHER* algorithm(Cipher cipher) {
    static EVP_CIPHER* const aes = ::EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
    static EVP_CIPHER* const chacha = ::EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
    const EVP_CIPHER* const chosen = cipher == Cipher::aes_256_gcm ? aes : chacha;
    NETIO_CHECK_MSG(chosen != nullptr, "libcrypto lacks a cipher");
    return chosen;
}

// Four zero bytes, and the number: big-endian for AES-GCM, little-endian for ChaCha20-Poly1305.
std::array<unsigned char, 12> as_nonce(Cipher cipher, std::uint64_t number) {
    std::array<unsigned char, 12> nonce{};
    for (std::size_t at = 0; at < 8; ++at) {
        const std::size_t place = cipher == Cipher::aes_256_gcm ? 11 - at : 4 + at;
        nonce[place] = static_cast<unsigned char>(number >> 8 * at);
    }
    return nonce;
}

int size_of(Bytes bytes) {
    NETIO_CHECK(bytes.size() <= seal_limit_bytes);
    return static_cast<int>(bytes.size());
}

} // namespace

bool processor_has_aes() noexcept {
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__ARM_FEATURE_AES)
    return true;
#else
    return false; // unknown
#endif
}

void Aead::Free::operator()(evp_cipher_ctx_st* context) const noexcept {
    ::EVP_CIPHER_CTX_free(context); // wipes the key
}

evp_cipher_ctx_st* Aead::prepare(Use use, std::uint64_t nonce) {
    const auto bytes = as_nonce(cipher_, nonce);
    const int encrypts = use == Use::seal ? 1 : 0;
    if (!context_ || use_ != use) {
        context_.reset(::EVP_CIPHER_CTX_new());
        use_ = use;
        NETIO_CHECK(context_ && ::EVP_CipherInit_ex2(context_.get(), algorithm(cipher_),
                                                     raw(key_.bytes().data()), bytes.data(),
                                                     encrypts, nullptr) == 1);
    } else {
        NETIO_CHECK(::EVP_CipherInit_ex2(context_.get(), nullptr, nullptr, bytes.data(), encrypts,
                                         nullptr) == 1);
    }
    return context_.get();
}

void Aead::seal(std::uint64_t nonce, std::span<const Bytes> associated,
                std::span<const Bytes> plain, std::span<std::byte> out) {
    EVP_CIPHER_CTX* const context = prepare(Use::seal, nonce);
    int done = 0;
    for (const Bytes part : associated) {
        if (part.empty()) continue;
        NETIO_CHECK(::EVP_EncryptUpdate(context, nullptr, &done, raw(part.data()), size_of(part)) ==
                    1);
    }
    std::span<std::byte> rest = out;
    for (const Bytes part : plain) {
        if (part.empty()) continue;
        NETIO_CHECK(rest.size() >= part.size() + seal_tag_bytes);
        NETIO_CHECK(::EVP_EncryptUpdate(context, raw(rest.data()), &done, raw(part.data()),
                                        size_of(part)) == 1);
        rest = rest.subspan(part.size()); // a stream cipher: all output is written at once
    }
    NETIO_CHECK(rest.size() == seal_tag_bytes);
    std::byte* const tag = rest.data();
    NETIO_CHECK(::EVP_EncryptFinal_ex(context, raw(tag), &done) == 1 &&
                ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, seal_tag_bytes, tag) == 1);
}

bool Aead::open(std::uint64_t nonce, std::span<const Bytes> associated, Bytes sealed,
                std::span<std::byte> out) {
    if (sealed.size() < seal_tag_bytes) return false;
    const Bytes text = sealed.first(sealed.size() - seal_tag_bytes);
    NETIO_CHECK(out.size() == text.size());
    std::array<std::byte, seal_tag_bytes> tag{};
    std::copy_n(sealed.data() + text.size(), tag.size(), tag.begin());
    EVP_CIPHER_CTX* const context = prepare(Use::open, nonce);
    int done = 0;
    for (const Bytes part : associated) {
        if (part.empty()) continue;
        NETIO_CHECK(::EVP_DecryptUpdate(context, nullptr, &done, raw(part.data()), size_of(part)) ==
                    1);
    }
    if (!text.empty()) {
        NETIO_CHECK(::EVP_DecryptUpdate(context, raw(out.data()), &done, raw(text.data()),
                                        size_of(text)) == 1);
    }
    NETIO_CHECK(::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, seal_tag_bytes, tag.data()) ==
                1);
    unsigned char rest = 0;
    if (::EVP_DecryptFinal_ex(context, &rest, &done) == 1) return true;
    wipe(out);
    return false;
}

Secret Aead::next_key() {
    const std::array<std::byte, secret_bytes> zeros{};
    std::array<std::byte, secret_bytes + seal_tag_bytes> sealed{};
    const Bytes plain{zeros};
    seal(std::numeric_limits<std::uint64_t>::max(), {}, {&plain, 1}, sealed);
    const Secret next{std::span{sealed}.first<secret_bytes>()};
    wipe(sealed);
    return next;
}

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
