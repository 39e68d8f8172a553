// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/report.hpp"
#include "apps/publish/publisher_config.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace apps {

// A publisher that several loops share: each has a part of the fids, with ports and a place on the
// bus of its own, as if it were a publisher by itself. Values in, values out.

// The parts, one for each loop; one loop has all of it, unchanged. The fids of a stream are divided
// evenly, and its rate with them; those that publish on a trigger stay together. Throws
// ConfigError: there are too few fids, or ports.
std::vector<PublisherConfig> divided(const PublisherConfig& config, std::size_t loops);

// Throws ConfigError where two of them would listen, or show figures, at the same port.
void refuse_shared_ports(const std::vector<PublisherConfig>& parts, std::size_t loops);

// What they have published together.
PublishReport sum_of(const std::vector<PublishReport>& parts, const std::string& name);

// What became of all publishers of a `netio publish`, for those who read the exit status. No I/O.

inline ExitStatus outcome(const std::vector<PublishReport>& reports, bool failed) {
    if (failed) return ExitStatus::failed;
    const auto is_confirmed = [](const PublishReport& each) { return each.unconfirmed == 0; };
    return std::ranges::all_of(reports, is_confirmed) ? ExitStatus::done : ExitStatus::incomplete;
}

} // namespace apps
