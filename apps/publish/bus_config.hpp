// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where and how a test publisher announces itself: `bus:` of its configuration.

#include "apps/publish/yaml_reader.hpp"
#include "pubsub/discovery/bus.hpp"

#include <chrono>
#include <string>

namespace apps {

struct BusConfig {
    std::string where;     // empty: nowhere
    std::string name;      // empty: HOST-PID-N
    std::string advertise; // the host that others are told, for an address that stands for all
    std::chrono::milliseconds lease = netio::pubsub::BusOptions{}.lease;
};

// A directory is relative to `folder`.
BusConfig read_bus(const YamlValue& value, const std::string& folder);

} // namespace apps
