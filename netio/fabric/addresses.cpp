// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/addresses.hpp"

#include "netio/base/never_destroyed.hpp"
#include "netio/base/status.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <string>
#include <system_error>
#include <unistd.h>

namespace netio::fabric {

// --- socket addresses ------------------------------------------------------------------------

namespace {

sa_family_t family_of(const void* socket_address) noexcept {
    sa_family_t family = AF_UNSPEC;
    std::memcpy(&family,
                static_cast<const std::byte*>(socket_address) + offsetof(sockaddr, sa_family),
                sizeof family);
    return family;
}

// The kernel reads the zone of these addresses only; for others the field may have any value.
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

access::AuthAddress to_auth_address(const void* socket_address) noexcept {
    access::AuthAddress result;
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

bool is_local(const void* socket_address) {
    sockaddr_in6 address{};
    const sa_family_t family = family_of(socket_address);
    const std::size_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof address;
    std::memcpy(&address, socket_address, size);
    address.sin6_port = 0; // at the same place as sin_port
    static_assert(offsetof(sockaddr_in6, sin6_port) == offsetof(sockaddr_in, sin_port));
    const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return true; // not known: listening reports the reason
    const bool is_absent = ::bind(fd, reinterpret_cast<const sockaddr*>(&address),
                                  static_cast<socklen_t>(size)) != 0 &&
                           errno == EADDRNOTAVAIL;
    ::close(fd);
    return !is_absent;
}

// --- interfaces ------------------------------------------------------------------------------

std::string_view family_name(int family) noexcept {
    return family == AF_INET6 ? "IPv6" : "IPv4";
}

std::string host_at_interface(const std::string& host, int family) {
    if (host.empty() || host.size() >= IF_NAMESIZE || ::if_nametoindex(host.c_str()) == 0)
        return host;
    ifaddrs* found = nullptr;
    if (::getifaddrs(&found) != 0) {
        throw FabricError{{errno, std::system_category()},
                          "cannot look up the addresses of interface '" + host + "'"};
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list{found, ::freeifaddrs};
    std::string beyond_the_link;
    std::string on_the_link;
    for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || host != each->ifa_name) continue;
        if (family != AF_UNSPEC && each->ifa_addr->sa_family != family) continue;
        if (each->ifa_addr->sa_family == AF_INET) return to_address(each->ifa_addr).host;
        if (each->ifa_addr->sa_family != AF_INET6) continue;
        const bool is_local = access::is_link_local(to_auth_address(each->ifa_addr).host);
        std::string& best = is_local ? on_the_link : beyond_the_link;
        if (best.empty()) best = to_address(each->ifa_addr).host;
    }
    if (beyond_the_link.empty() && on_the_link.empty()) {
        const std::string kind = family == AF_UNSPEC ? "" : std::string{family_name(family)} + " ";
        throw FabricError{{EADDRNOTAVAIL, std::system_category()},
                          "the interface '" + host + "' has no " + kind + "address"};
    }
    return beyond_the_link.empty() ? on_the_link : beyond_the_link;
}

// --- names -----------------------------------------------------------------------------------

namespace {

const std::error_category& resolver_category() {
    struct Category final : std::error_category {
        const char* name() const noexcept override { return "resolver"; }
        std::string message(int code) const override { return ::gai_strerror(code); }
    };
    static NeverDestroyed<Category> category;
    return *category;
}

} // namespace

AddressList resolve(const Address& address, bool passive) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = passive ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int result = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
    if (result != 0) {
        const std::error_code code = result == EAI_SYSTEM
                                         ? std::error_code{errno, std::system_category()}
                                         : std::error_code{result, resolver_category()};
        // Address{"HOST:PORT"} compiles, as a host without a port.
        const bool has_port = std::ranges::count(address.host, ':') == 1;
        throw FabricError{code, "cannot resolve '" + address.host + "'" +
                                    (has_port ? " (a host; parse_address() takes HOST:PORT)"
                                              : " (check the name with 'getent hosts NAME')")};
    }
    return AddressList{found};
}

std::string numeric_host(const addrinfo& entry) {
    std::array<char, NI_MAXHOST> host{};
    const int result = ::getnameinfo(entry.ai_addr, entry.ai_addrlen, host.data(), host.size(),
                                     nullptr, 0, NI_NUMERICHOST);
    return result == 0 ? std::string{host.data()} : std::string{};
}

} // namespace netio::fabric
