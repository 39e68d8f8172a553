// SPDX-License-Identifier: Apache-2.0
#pragma once

// Addresses of hosts in the form in which keys are bound to them and connections are counted.

#include "netio/base/require_cxx20.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace netio::access::inline v0_3 {

// An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d.
using Host = std::array<std::byte, 16>;
constexpr Host host_of_ipv4(std::span<const std::byte, 4> bytes) noexcept {
    Host host{};
    host[10] = host[11] = std::byte{0xff};
    for (std::size_t at = 0; at < bytes.size(); ++at)
        host[12 + at] = bytes[at];
    return host;
}

// Parses a numeric IPv4 or IPv6 address without brackets (inet_pton(3)). Returns `nullopt` for
// anything else, such as a name. The zone of an IPv6 address is not part of the host: see
// zone_of().
std::optional<Host> parse_host(const std::string& text);
// The zone of an IPv6 address: eth0 in fe80::1%eth0. Empty if there is none.
inline std::string_view zone_of(std::string_view text) noexcept {
    const std::size_t percent = text.find('%');
    return percent == std::string_view::npos ? std::string_view{} : text.substr(percent + 1);
}

constexpr bool is_ipv4(const Host& host) noexcept {
    const Host prefix = host_of_ipv4(std::array<std::byte, 4>{});
    for (std::size_t at = 0; at < 12; ++at) {
        if (host[at] != prefix[at]) return false;
    }
    return true;
}

// Whether this is the wildcard address, in either notation.
constexpr bool is_any(const Host& host) noexcept {
    return host == Host{} || host == host_of_ipv4(std::array<std::byte, 4>{});
}

// Whether the address can be reached from this machine only: 127.0.0.0/8, in either notation, and
// ::1.
constexpr bool is_loopback(const Host& host) noexcept {
    Host loopback{};
    loopback[15] = std::byte{1};
    return host == loopback || (is_ipv4(host) && host[12] == std::byte{127});
}

// Whether the address is of one link only (fe80::/10); the same address may exist on every link of
// a machine.
constexpr bool is_link_local(const Host& host) noexcept {
    return host[0] == std::byte{0xfe} && (host[1] & std::byte{0xc0}) == std::byte{0x80};
}

// Identifies a machine where a limit holds for each machine: its IPv4 address, or the first 64 bits
// of its IPv6 address, because it can use every address of its network.
constexpr Host machine_of(const Host& host) noexcept {
    if (is_ipv4(host)) return host;
    Host network = host;
    for (std::size_t at = 8; at < network.size(); ++at)
        network[at] = std::byte{};
    return network;
}

// Whether a server may listen at this address: "problem; remedy", or empty if it may. `shown` is
// the address as the user wrote it, `option` the option that allows anonymous peers of other
// machines.
std::string refuse_listening(const Host& host, const std::string& shown, bool has_keys, bool open,
                             const std::string& option);

// The address that a client connects to. Both sides know it.
struct AuthAddress {
    Host host{};
    std::uint16_t port = 0;
    // For a link-local address: the number of the interface on this machine. The other side has
    // another number for the same link, so proofs leave it out.
    std::uint32_t zone = 0;

    friend bool operator==(const AuthAddress&, const AuthAddress&) = default;
};

} // namespace netio::access::inline v0_3
