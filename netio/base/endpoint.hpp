// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"

#include <string>

namespace netio::inline v0_3 {

// Where a socket listens: an address, with the port that was really bound, and over what.
struct Endpoint {
    std::string provider;
    Address address;
};

} // namespace netio::inline v0_3
