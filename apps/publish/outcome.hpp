// SPDX-License-Identifier: Apache-2.0
#pragma once

// What became of all publishers of a `netio publish`, for those who read the exit status. No I/O.

#include "apps/common/exit_status.hpp"
#include "apps/common/report.hpp"

#include <algorithm>
#include <vector>

namespace apps {

inline ExitStatus outcome(const std::vector<PublishReport>& reports, bool failed) {
    if (failed) return ExitStatus::failed;
    const auto is_confirmed = [](const PublishReport& each) { return each.unconfirmed == 0; };
    return std::ranges::all_of(reports, is_confirmed) ? ExitStatus::done : ExitStatus::incomplete;
}

} // namespace apps
