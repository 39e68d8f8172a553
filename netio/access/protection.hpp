// SPDX-License-Identifier: Apache-2.0
#pragma once

// The protection of a session's traffic after authentication, and its encoding in the flag byte of
// the hello. The proofs of both sides cover that byte.

#include "netio/base/require_cxx20.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace netio::access::inline v0_3 {

// Each level includes the ones before it.
enum class Protection : std::uint8_t {
    none,      // the traffic is not protected; the peer was authenticated when it connected
    peers,     // frames that change a session's state have a tag; data has none
    integrity, // every frame has a tag, which is verified before delivery
    privacy,   // every frame is encrypted
};

constexpr std::string_view to_string(Protection protection) noexcept {
    switch (protection) {
    case Protection::none:
        return "none";
    case Protection::peers:
        return "peers";
    case Protection::integrity:
        return "integrity";
    case Protection::privacy:
        return "privacy";
    }
    return "?";
}

// For sealed records and for the key exchange before them.
enum class Cipher : std::uint8_t { aes_256_gcm, chacha20_poly1305 };

// The flag byte: bit 0: a key follows the service's data; bits 1 and 2: the protection; bit 3: this
// side has no instructions for AES; the others are zero.
struct AuthFlags {
    bool has_key = false;
    Protection protection = Protection::none;
    bool lacks_aes = false;

    friend bool operator==(const AuthFlags&, const AuthFlags&) = default;
};

constexpr std::uint8_t encode(const AuthFlags& flags) noexcept {
    const unsigned level = static_cast<unsigned>(flags.protection);
    return static_cast<std::uint8_t>((flags.has_key ? 1U : 0U) | level << 1 |
                                     (flags.lacks_aes ? 8U : 0U));
}

// Returns `nullopt` for undefined bits, or a protection without a key.
constexpr std::optional<AuthFlags> decode_flags(std::uint8_t byte) noexcept {
    const AuthFlags flags{.has_key = (byte & 1U) != 0,
                          .protection = static_cast<Protection>(byte >> 1 & 3U),
                          .lacks_aes = (byte & 8U) != 0};
    const bool wrong = byte > 15 || (!flags.has_key && byte != 0);
    return wrong ? std::nullopt : std::optional{flags};
}

} // namespace netio::access::inline v0_3
