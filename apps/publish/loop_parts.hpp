// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publisher that several loops share: each has a part of the fids, with ports and a place on the
// bus of its own, as if it were a publisher by itself. Values in, values out.

#include "apps/common/report.hpp"
#include "apps/publish/publisher_config.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace apps {

// The parts, one for each loop; one loop has all of it, unchanged. The fids of a stream are divided
// evenly, and its rate with them; those that publish on a trigger stay together. Throws
// ConfigError: there are too few fids, or ports.
std::vector<PublisherConfig> divided(const PublisherConfig& config, std::size_t loops);

// Throws ConfigError where two of them would listen, or show figures, at the same port.
void refuse_shared_ports(const std::vector<PublisherConfig>& parts, std::size_t loops);

// What they have published together.
PublishReport sum_of(const std::vector<PublishReport>& parts, const std::string& name);

} // namespace apps
