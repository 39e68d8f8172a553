// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace netio::fabric {

// Where `host` is the name of an interface of this machine (eth0), its address in numbers: the
// first of IPv4, else of IPv6 beyond the link. Else `host` as it is. Throws FabricError: the
// interface has none.
std::string host_at_interface(const std::string& host);

} // namespace netio::fabric
