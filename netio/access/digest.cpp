// SPDX-License-Identifier: Apache-2.0
#include "netio/access/digest.hpp"

#include "netio/access/openssl_bytes.hpp"
#include "netio/base/check.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <memory>

namespace netio::access::inline v0_2 {
namespace {

using DigestContext = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, Free<EVP_MAC_CTX_free>>;

// To look an algorithm up costs more than to use it.
const EVP_MD* sha256_algorithm() {
    static EVP_MD* const algorithm = ::EVP_MD_fetch(nullptr, "SHA256", nullptr);
    NETIO_CHECK_MSG(algorithm != nullptr, "libcrypto has no SHA-256");
    return algorithm;
}

// With its digest, and without a key: to be copied.
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
    case Purpose::gate:
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

// libcrypto fails here for want of memory only.
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
    // libcrypto takes a null pointer for "the key that was there before".
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

} // namespace netio::access::inline v0_2
