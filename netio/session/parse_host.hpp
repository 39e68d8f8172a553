// SPDX-License-Identifier: Apache-2.0
#pragma once

// Addresses as people write them, in the form in which hosts are told apart.

#include "netio/access/host.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace netio::inline v0_2 {

// The zone of an IPv6 address: eth0 of fe80::1%eth0. Empty if there is none.
inline std::string_view zone_of(std::string_view text) noexcept {
    const std::size_t percent = text.find('%');
    return percent == std::string_view::npos ? std::string_view{} : text.substr(percent + 1);
}

// Of an IPv4 or IPv6 address in numbers, without brackets (inet_pton(3)); nothing of anything else,
// such as a name. The zone of an IPv6 address is no part of the host: see zone_of().
inline std::optional<access::Host> parse_host(const std::string& text) {
    std::array<std::byte, 4> ipv4{};
    if (::inet_pton(AF_INET, text.c_str(), ipv4.data()) == 1) return access::host_of_ipv4(ipv4);
    const std::size_t percent = text.find('%');
    if (percent != std::string::npos && percent + 1 == text.size()) return {};
    access::Host ipv6{};
    if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), ipv6.data()) != 1) return {};
    return ipv6;
}

} // namespace netio::inline v0_2
