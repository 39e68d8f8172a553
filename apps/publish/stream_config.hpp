// SPDX-License-Identifier: Apache-2.0
#pragma once

// The streams of a test publisher: `streams:` of its configuration.

#include "apps/common/sizes.hpp"
#include "apps/publish/fault_plan.hpp"
#include "apps/publish/trigger_clock.hpp"
#include "apps/publish/yaml_reader.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace apps {

struct PatternConfig { // self-checking messages (apps/common/pattern.hpp)
    bool timed = false;
    FaultConfig faults;
};
struct FileConfig {
    std::vector<std::string> paths; // one for all fids, or one for each
    bool repeat = false;
};
struct PipeConfig {}; // standard input
using SourceConfig = std::variant<PatternConfig, FileConfig, PipeConfig>;

// What goes in front of each message: up to 8 bytes, or as many of the number of the event.
struct HeaderConfig {
    std::vector<std::byte> bytes;
    bool event = false;
};
std::size_t bytes_of(const HeaderConfig& header);

// All fids of its streams publish together, the same event.
struct TriggerConfig {
    std::string name;
    RateConfig rate;
    std::uint64_t seed = 1;
};

struct StreamConfig {
    std::vector<netio::pubsub::FidRange> fids;
    std::string meaning; // for those who find them on a bus
    SourceConfig source;
    Sizes sizes;
    std::uint64_t seed = 1;
    std::optional<RateConfig> rate;     // absent: as fast as accepted
    std::optional<std::size_t> trigger; // of the publisher's, instead of a rate
    HeaderConfig header;
    std::size_t slices = 1;             // pieces of memory that a message is gathered from
    std::optional<std::uint64_t> count; // messages of each fid; absent: until the source ends
    std::uint8_t status = 0;
};

// What all streams of a publisher have in common.
struct StreamLimits {
    std::vector<std::string> triggers; // their names
    std::size_t largest_message = 0;
    std::uint64_t first_seed = 1; // of the first stream, if it has none of its own
    std::string folder;           // relative paths are relative to it
};
// A map of the section.
RateConfig read_rate_map(const YamlValue& value, std::string_view section);
std::vector<StreamConfig> read_streams(const YamlValue& list, const StreamLimits& limits);

// `folder` may be empty.
std::string path_in_folder(const std::string& path, const std::string& folder);

} // namespace apps
