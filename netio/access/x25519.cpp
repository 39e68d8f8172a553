// SPDX-License-Identifier: Apache-2.0
#include "netio/access/x25519.hpp"

#include "netio/access/openssl_bytes.hpp"
#include "netio/base/check.hpp"

#include <openssl/evp.h>

#include <memory>

namespace netio::access::inline v0_2 {
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

} // namespace netio::access::inline v0_2
