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
    std::string_view what;   // is the matter over tcp
    std::string_view remedy; // besides a patch
    std::string_view patch;  // the name of its mend in docs/upstream; empty: there is none
    Version first;           // that has it, and so have all up to the newest that was looked at
};

// The newest that was looked at. None is known to be without a fault that those before have.
inline constexpr Version newest_looked_at{2, 6};

// That it has, or, where nobody has looked at it yet, may have.
std::vector<FabricFault> faults_of(const Version& libfabric);

// "libfabric 1.17", and whether anybody has looked at it.
std::string named_with_doubt(const Version& libfabric);

// What to say of them at the start, in one line; empty: nothing, for it has none, or nobody from
// elsewhere reaches it over tcp.
std::string fault_warning(const std::vector<netio::Endpoint>& endpoints, const Version& libfabric);

// Where a program listens, and the warning, for its log.
void tell_listening(const std::vector<netio::Endpoint>& endpoints);

} // namespace apps
