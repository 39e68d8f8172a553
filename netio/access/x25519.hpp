// SPDX-License-Identifier: Apache-2.0
#pragma once

// Diffie-Hellman on Curve25519 (RFC 7748), from libcrypto.

#include "netio/access/secret.hpp"

#include <array>
#include <optional>

namespace netio::access::inline v0_2 {

using PublicKey = std::array<std::byte, 32>;

PublicKey x25519_public(const Secret& own);
// Nothing: the peer's key is one of the few with which everybody gets the same secret.
std::optional<Secret> x25519(const Secret& own, const PublicKey& peer);

} // namespace netio::access::inline v0_2
