// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conversions between the socket addresses of the kernel and libfabric (sockaddr_in, sockaddr_in6)
// and the library's types, the addresses of an interface, and the addresses of a name.

#include "netio/access/host.hpp"
#include "netio/base/status.hpp"

#include <memory>
#include <netdb.h>
#include <string>
#include <string_view>
#include <sys/socket.h>

namespace netio::fabric {

// A link-local address has its zone: fe80::1%eth0, or %3 for an interface without a name.
Address to_address(const void* socket_address);
// Returns all zeros if it is neither IPv4 nor IPv6.
access::AuthAddress to_auth_address(const void* socket_address) noexcept;

// Whether this machine has the address (of IPv4 or IPv6); its port is ignored.
bool is_local(const void* socket_address);

// Names of address families (AF_INET, AF_INET6).
std::string_view family_name(int family) noexcept;

// If `host` is the name of an interface of this machine (eth0), returns its numeric address: the
// first IPv4 address, else the first IPv6 address that is not link-local, else its link-local one
// with its zone; with a family, the first one of that family. Otherwise returns `host` unchanged.
// Throws FabricError if the interface has no address.
std::string host_at_interface(const std::string& host, int family = AF_UNSPEC);

struct AddressListCloser {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListCloser>; // a list through ai_next

// Resolves a name with the system resolver; blocks. Returns at least one address. `passive`: for
// listening. Throws FabricError if the name cannot be resolved.
AddressList resolve(const Address& address, bool passive);
std::string numeric_host(const addrinfo& entry);

} // namespace netio::fabric
