// SPDX-License-Identifier: Apache-2.0
#include "netio/access/aead.hpp"

#include "netio/access/openssl_bytes.hpp"
#include "netio/base/check.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <limits>

namespace netio::access::inline v0_2 {
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
    return false; // as far as is known here
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
        rest = rest.subspan(part.size()); // of a stream: nothing is held back
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

} // namespace netio::access::inline v0_2
