// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/socket_address.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstring>
#include <net/if.h>
#include <netinet/in.h>
#include <string>

namespace netio::fabric {
namespace {

sa_family_t family_of(const void* socket_address) noexcept {
    sa_family_t family = AF_UNSPEC;
    std::memcpy(&family,
                static_cast<const std::byte*>(socket_address) + offsetof(sockaddr, sa_family),
                sizeof family);
    return family;
}

// The kernel looks at the zone of these addresses only; other senders may leave anything there.
std::uint32_t zone_of(const sockaddr_in6& address) noexcept {
    const in6_addr& host = address.sin6_addr;
    const bool has_zone = IN6_IS_ADDR_LINKLOCAL(&host) || IN6_IS_ADDR_MC_LINKLOCAL(&host);
    return has_zone ? address.sin6_scope_id : 0;
}

std::string zone_suffix(const sockaddr_in6& address) {
    const std::uint32_t zone = zone_of(address);
    if (zone == 0) return {};
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(zone, name.data()) == nullptr) return '%' + std::to_string(zone);
    return std::string{'%'} + name.data();
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
        return {host.data() + zone_suffix(address), ntohs(address.sin6_port)};
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
        result.zone = zone_of(address);
    }
    return result;
}

} // namespace netio::fabric
