// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rights as the words of a line (netio/access/key_text.hpp has the list of them).

#include "netio/access/rights.hpp"

#include <string>
#include <string_view>

namespace netio::access::inline v0_2 {

std::string to_string(const Rights& rights);
// Throws std::invalid_argument: the words mean nothing.
Rights parse_rights(std::string_view words);

} // namespace netio::access::inline v0_2
