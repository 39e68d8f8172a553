// SPDX-License-Identifier: Apache-2.0
#pragma once

// Addresses as people write them, in the form in which hosts are told apart.

#include "netio/access/host.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <optional>
#include <string>

namespace netio::inline v0_2 {

// Of an IPv4 or IPv6 address in numbers, without brackets or a zone (inet_pton(3)); nothing of
// anything else, such as a name.
inline std::optional<access::Host> parse_host(const std::string& text) {
    std::array<std::byte, 4> ipv4{};
    if (::inet_pton(AF_INET, text.c_str(), ipv4.data()) == 1) return access::host_of_ipv4(ipv4);
    access::Host ipv6{};
    if (::inet_pton(AF_INET6, text.c_str(), ipv6.data()) != 1) return {};
    return ipv6;
}

} // namespace netio::inline v0_2
