// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which addresses count as one machine where there is a limit for each.

#include "netio/access/host.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace netio::access::inline v0_2 {

// The same for all addresses of a machine: it has one IPv4 address here, and as many IPv6 addresses
// of its network as it likes.
constexpr Host machine_of(const Host& host) noexcept {
    const Host ipv4 = host_of_ipv4(std::array<std::byte, 4>{});
    if (std::equal(host.begin(), host.begin() + 12, ipv4.begin())) return host;
    Host network = host;
    std::fill(network.begin() + 8, network.end(), std::byte{});
    return network;
}

} // namespace netio::access::inline v0_2
