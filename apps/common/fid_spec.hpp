// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fids as people write them: 7, 0x1f, 0-63, and lists of these with commas. No I/O.

#include "pubsub/core/fid.hpp"

#include <string_view>
#include <vector>

namespace apps {

// The fids of all the specifications, as a set of ranges. Throws std::invalid_argument naming the
// piece that is wrong and what is allowed.
std::vector<netio::pubsub::FidRange> parse_fids(std::string_view text);

} // namespace apps
