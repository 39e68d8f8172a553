// SPDX-License-Identifier: Apache-2.0
#include "apps/common/host_addresses.hpp"

#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace apps {

SocketAddress::SocketAddress(const sockaddr& address, socklen_t size) noexcept
    : size_{std::min<socklen_t>(size, sizeof storage_)} {
    std::memcpy(&storage_, &address, size_);
}

std::uint16_t SocketAddress::port() const noexcept {
    return ntohs(family() == AF_INET ? reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port
                                     : reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
}

void SocketAddress::set_port(std::uint16_t port) noexcept {
    if (family() == AF_INET) {
        reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
    } else {
        reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
    }
}

std::vector<SocketAddress> addresses_of(const netio::Address& address, Lookup lookup) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = lookup == Lookup::numeric ? AI_NUMERICHOST : 0;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int failure = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
    if (failure != 0) throw std::runtime_error{::gai_strerror(failure)};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list{found, ::freeaddrinfo};
    std::vector<SocketAddress> addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
        addresses.emplace_back(*each->ai_addr, each->ai_addrlen);
    return addresses;
}

} // namespace apps
