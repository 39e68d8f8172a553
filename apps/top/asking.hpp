// SPDX-License-Identifier: Apache-2.0
#pragma once

// A look at many programs: they are asked at the same time, and one deadline holds for all, so that
// those who do not answer hold up nobody's row.

#include "apps/top/fetch.hpp"
#include "apps/top/name_search.hpp"
#include "apps/top/table.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace apps::top {

struct AskLimits {
    FetchLimits each;          // but for the room
    std::size_t at_once = 128; // of more, the others when some have answered
    std::size_t bytes_together = std::size_t{512} << 20;
};

// In the order of the sources, HOST:PORT each; what keeps one from being read stands in its look.
std::vector<Look> look_at(const std::vector<std::string>& sources, NameSearch& names,
                          const AskLimits& limits = {});

} // namespace apps::top
