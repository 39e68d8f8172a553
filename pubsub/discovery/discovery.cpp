// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/discovery.hpp"

namespace netio::pubsub::inline v0_2 {

Discovery::~Discovery() = default;
Announcer::~Announcer() = default;

} // namespace netio::pubsub::inline v0_2
