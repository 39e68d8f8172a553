// SPDX-License-Identifier: Apache-2.0
#pragma once

// The addresses that a name stands for, by the kernel's resolver. Blocks.

#include "netio/base/status.hpp"

#include <memory>
#include <netdb.h>
#include <string>

namespace netio::fabric {

struct AddressListCloser {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListCloser>; // a list through ai_next

// One at least. `passive`: to listen at. Throws FabricError: the name cannot be resolved.
AddressList resolve(const Address& address, bool passive);
std::string numeric_host(const addrinfo& entry);

} // namespace netio::fabric
