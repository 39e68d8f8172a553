// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far sessions can protect what travels on them: to the tags of frames. What would be more is
// refused where it is asked for.

#include "netio/access/protection.hpp"
#include "netio/base/option_check.hpp"

#include <string>

namespace netio::inline v0_2 {

inline constexpr access::Protection most_protection = access::Protection::peers;

// Throws std::invalid_argument.
inline access::Protection checked_protection(access::Protection wanted) {
    require_option(wanted <= most_protection,
                   "protection " + std::string{to_string(wanted)} +
                       " is not available in this version: it must be none or peers, and the "
                       "network has to keep others from reading and changing what travels");
    return wanted;
}

} // namespace netio::inline v0_2
