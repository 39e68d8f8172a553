// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the configuration's table about streams, sizes, rates and triggers.

#include "apps/publish/config_table.hpp"
#include "apps/publish/publisher_config.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace apps {

using Keys = std::vector<ConfigKey>;

inline constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t largest_message = netio::pubsub::largest_message_limit;

// Adds the rows of `streams`, `triggers` and their sections.
void add_streams(Keys& keys);
// Reads the list of `streams`.
std::vector<StreamConfig> read_streams(const YamlValue& list, ReadContext& context);

// `folder` may be empty.
std::string path_in_folder(const std::string& path, const std::string& folder);

} // namespace apps
