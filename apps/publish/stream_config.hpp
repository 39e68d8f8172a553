// SPDX-License-Identifier: Apache-2.0
#pragma once

// The streams of a test publisher: `streams:` of its configuration.

#include "apps/common/sizes.hpp"
#include "apps/publish/yaml_reader.hpp"
#include "pubsub/core/fid.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace apps {

struct PatternConfig {}; // self-checking messages (apps/common/pattern.hpp)
struct FileConfig {
    std::vector<std::string> paths; // one for all fids, or one for each
    bool repeat = false;
};
struct PipeConfig {}; // standard input
using SourceConfig = std::variant<PatternConfig, FileConfig, PipeConfig>;

struct RateConfig {
    double per_second = 0; // messages of the whole stream
    std::uint64_t burst = 1;
};

struct StreamConfig {
    std::vector<netio::pubsub::FidRange> fids;
    std::string meaning; // for those who find them on a bus
    SourceConfig source;
    Sizes sizes;
    std::uint64_t seed = 1;
    std::optional<RateConfig> rate;     // absent: as fast as accepted
    std::optional<std::uint64_t> count; // messages of each fid; absent: until the source ends
    std::uint8_t status = 0;
};

// What all streams of a publisher have in common.
struct StreamLimits {
    std::size_t largest_message = 0;
    std::uint64_t first_seed = 1; // of the first stream, if it has none of its own
    std::string folder;           // relative paths are relative to it
};
std::vector<StreamConfig> read_streams(const YamlValue& list, const StreamLimits& limits);

// `folder` may be empty.
std::string path_in_folder(const std::string& path, const std::string& folder);

} // namespace apps
