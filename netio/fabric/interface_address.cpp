// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/interface_address.hpp"

#include "netio/base/status.hpp"
#include "netio/fabric/socket_address.hpp"

#include <cerrno>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>

namespace netio::fabric {

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
        const bool is_local = access::is_link_local(to_gate_address(each->ifa_addr).host);
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

} // namespace netio::fabric
