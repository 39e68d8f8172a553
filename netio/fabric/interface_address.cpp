// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/interface_address.hpp"

#include "netio/base/status.hpp"
#include "netio/fabric/socket_address.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>

namespace netio::fabric {
namespace {

bool reaches_beyond_the_link(const sockaddr* address) {
    sockaddr_in6 whole{};
    std::memcpy(&whole, address, sizeof whole);
    return !IN6_IS_ADDR_LINKLOCAL(&whole.sin6_addr);
}

} // namespace

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
    std::string best;
    for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || host != each->ifa_name) continue;
        if (family != AF_UNSPEC && each->ifa_addr->sa_family != family) continue;
        if (each->ifa_addr->sa_family == AF_INET) return to_address(each->ifa_addr).host;
        if (each->ifa_addr->sa_family == AF_INET6 && best.empty() &&
            reaches_beyond_the_link(each->ifa_addr))
            best = to_address(each->ifa_addr).host;
    }
    if (best.empty()) {
        const std::string kind = family == AF_UNSPEC ? "" : std::string{family_name(family)} + " ";
        throw FabricError{{EADDRNOTAVAIL, std::system_category()},
                          "the interface '" + host + "' has no " + kind + "address"};
    }
    return best;
}

} // namespace netio::fabric
