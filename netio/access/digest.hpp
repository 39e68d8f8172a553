// SPDX-License-Identifier: Apache-2.0
#pragma once

// SHA-256, HMAC and HKDF, from libcrypto.

#include "netio/access/secret.hpp"

#include <initializer_list>
#include <utility>

namespace netio::access::inline v0_2 {

inline constexpr std::size_t digest_bytes = 32;
using Digest = std::array<std::byte, digest_bytes>;

Bytes as_bytes(std::string_view text) noexcept;

// Of the parts one behind the other.
Digest sha256(std::initializer_list<Bytes> parts);
Digest hmac_sha256(Bytes key, std::span<const Bytes> parts);
inline Digest hmac_sha256(Bytes key, std::initializer_list<Bytes> parts) {
    return hmac_sha256(key, std::span{parts.begin(), parts.size()});
}
// Two keys from a chaining key and input, as Noise defines it; `third` too if it is given.
std::pair<Secret, Secret> hkdf(const Secret& chaining_key, Bytes input, Secret* third = nullptr);

// What a secret is used for. A key of one purpose says nothing about those of the others, nor about
// the secret (HKDF, RFC 5869, the label being its info).
enum class Purpose { gate, tag, psk };
Secret derive(const Secret& secret, Purpose purpose);

} // namespace netio::access::inline v0_2
