// SPDX-License-Identifier: Apache-2.0
#pragma once

// Machines and their addresses in the form in which keys are bound to them.

#include "netio/base/require_cxx20.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::access::inline v0_2 {

// Of a machine: its IPv6 address, or ::ffff: before its IPv4 address.
using Host = std::array<std::byte, 16>;
constexpr Host host_of_ipv4(std::span<const std::byte, 4> bytes) noexcept {
    Host host{};
    host[10] = host[11] = std::byte{0xff};
    for (std::size_t at = 0; at < bytes.size(); ++at)
        host[12 + at] = bytes[at];
    return host;
}

// The address that stands for all of a machine's, in either notation.
constexpr bool is_any(const Host& host) noexcept {
    return host == Host{} || host == host_of_ipv4(std::array<std::byte, 4>{});
}

// fe80::/10: of one link only, and the same address may exist on every link of a machine.
constexpr bool is_link_local(const Host& host) noexcept {
    return host[0] == std::byte{0xfe} && (host[1] & std::byte{0xc0}) == std::byte{0x80};
}

// Where the client connects to, as either side sees it.
struct GateAddress {
    Host host{};
    std::uint16_t port = 0;
    // Of a link-local address: the number of the interface on this machine. The other side has
    // another number for the same link, so proofs leave it out.
    std::uint32_t zone = 0;

    friend bool operator==(const GateAddress&, const GateAddress&) = default;
};

} // namespace netio::access::inline v0_2
