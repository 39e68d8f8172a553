// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"

#include <string>

namespace netio::inline v0_3 {

// Where a socket listens: its address, with the port that was actually bound, and the provider.
struct Endpoint {
    std::string provider;
    Address address;
};

} // namespace netio::inline v0_3
