// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel's and libfabric's socket addresses (sockaddr_in, sockaddr_in6) in the library's terms.

#include "netio/access/host.hpp"
#include "netio/base/status.hpp"

namespace netio::fabric {

// A link-local address has its zone: fe80::1%eth0, or %3 for an interface without a name.
Address to_address(const void* socket_address);
// All zeros for what is neither IPv4 nor IPv6.
access::GateAddress to_gate_address(const void* socket_address) noexcept;

} // namespace netio::fabric
