// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/report.hpp"
#include "apps/publish/publisher_config.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace apps {

// Divides a publisher among several loops. Each loop gets a part of the fids, with its own ports
// and its own announcement on the bus, like a separate publisher. No I/O.

// Returns one part per loop; a single loop gets the unchanged publisher. The fids of a stream are
// divided evenly, and its rate in proportion; streams that publish on a trigger stay together.
// Throws ConfigError if there are too few fids or ports.
std::vector<PublisherConfig> divided(const PublisherConfig& config, std::size_t loops);

// Throws ConfigError if two parts would use the same port to listen or to show metrics.
void refuse_shared_ports(const std::vector<PublisherConfig>& parts, std::size_t loops);

// Returns the sum of the reports.
PublishReport sum_of(const std::vector<PublishReport>& parts, const std::string& name);

// Returns the exit status for all publishers of a `netio publish`. No I/O.

inline ExitStatus outcome(const std::vector<PublishReport>& reports, bool failed) {
    if (failed) return ExitStatus::failed;
    const auto is_confirmed = [](const PublishReport& each) { return each.unconfirmed == 0; };
    return std::ranges::all_of(reports, is_confirmed) ? ExitStatus::done : ExitStatus::incomplete;
}

} // namespace apps
