// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is wrong in which libfabric, as far as a peer can use it (docs/upstream).

#include "apps/common/machine.hpp"
#include "netio/base/endpoint.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace apps {

struct FabricFault {
    std::string_view what;  // that a peer over tcp can do
    std::string_view patch; // the name of its mend in docs/upstream
    Version first;
    Version last;
};

std::vector<FabricFault> faults_of(const Version& libfabric);

// What to say of them at the start, in one line; empty: nothing, for it has none, or nobody from
// elsewhere reaches it over tcp.
std::string fault_warning(const std::vector<netio::Endpoint>& endpoints, const Version& libfabric);

// Where a program listens, and the warning, for its log.
void tell_listening(const std::vector<netio::Endpoint>& endpoints);

} // namespace apps
