// SPDX-License-Identifier: Apache-2.0
#pragma once

// Addresses: the kernel's and libfabric's socket addresses (sockaddr_in, sockaddr_in6) in the
// library's terms, the addresses of an interface, and the addresses that a name resolves to.

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
// All zeros if it is neither IPv4 nor IPv6.
access::AuthAddress to_auth_address(const void* socket_address) noexcept;

// The families of addresses, as the kernel counts them (AF_INET, AF_INET6).
std::string_view family_name(int family) noexcept;

// Where `host` is the name of an interface of this machine (eth0), its address in numbers: the
// first of IPv4, else of IPv6 beyond the link, else its link-local one with its zone; with a
// family, the first of that. Else `host` as it is. Throws FabricError: the interface has none.
std::string host_at_interface(const std::string& host, int family = AF_UNSPEC);

struct AddressListCloser {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListCloser>; // a list through ai_next

// Resolves a name with the system resolver; blocks. Returns at least one address. `passive`: to
// listen at it. Throws FabricError: the name cannot be resolved.
AddressList resolve(const Address& address, bool passive);
std::string numeric_host(const addrinfo& entry);

} // namespace netio::fabric
