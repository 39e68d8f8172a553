// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <sys/socket.h>

namespace netio::fabric {

// The families of addresses, as the kernel counts them (AF_INET, AF_INET6).
std::string_view family_name(int family) noexcept;

// Where `host` is the name of an interface of this machine (eth0), its address in numbers: the
// first of IPv4, else of IPv6 beyond the link, else its link-local one with its zone; with a
// family, the first of that. Else `host` as it is. Throws FabricError: the interface has none.
std::string host_at_interface(const std::string& host, int family = AF_UNSPEC);

} // namespace netio::fabric
