// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/socket_address.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>

namespace netio::fabric {
namespace {

sa_family_t family_of(const void* socket_address) noexcept {
    sa_family_t family = AF_UNSPEC;
    std::memcpy(&family,
                static_cast<const std::byte*>(socket_address) + offsetof(sockaddr, sa_family),
                sizeof family);
    return family;
}

} // namespace

Address to_address(const void* socket_address) {
    std::array<char, INET6_ADDRSTRLEN> host{};
    const sa_family_t family = family_of(socket_address);
    if (family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, socket_address, sizeof address);
        ::inet_ntop(AF_INET, &address.sin_addr, host.data(), host.size());
        return {host.data(), ntohs(address.sin_port)};
    }
    if (family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, socket_address, sizeof address);
        ::inet_ntop(AF_INET6, &address.sin6_addr, host.data(), host.size());
        return {host.data(), ntohs(address.sin6_port)};
    }
    return {"unknown", 0};
}

access::GateAddress to_gate_address(const void* socket_address) noexcept {
    access::GateAddress result;
    const sa_family_t family = family_of(socket_address);
    if (family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, socket_address, sizeof address);
        std::array<std::byte, sizeof address.sin_addr> bytes{};
        std::memcpy(bytes.data(), &address.sin_addr, bytes.size());
        return {.host = access::host_of_ipv4(bytes), .port = ntohs(address.sin_port)};
    }
    if (family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, socket_address, sizeof address);
        std::memcpy(result.host.data(), &address.sin6_addr, result.host.size());
        result.port = ntohs(address.sin6_port);
    }
    return result;
}

} // namespace netio::fabric
