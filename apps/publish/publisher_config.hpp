// SPDX-License-Identifier: Apache-2.0
#pragma once

// The YAML configuration of a test publisher: what `netio publish` reads (config/ has commented
// examples). The result is plain values; every mistake is a ConfigError
// (apps/publish/yaml_reader.hpp).

#include "apps/common/keys.hpp"
#include "apps/common/sizes.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/publish/bus_config.hpp"
#include "apps/publish/yaml_reader.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"

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

struct PublisherConfig {
    std::string file; // its name, for what only shows later
    std::vector<netio::Address> listen;
    BusConfig bus;
    KeyArguments keys;
    MetricsArguments metrics;
    std::string provider = "auto";
    netio::EventLoop::Options loop;
    bool buffered = true;
    netio::pubsub::Publisher::Options publisher; // of both modes
    netio::pubsub::BufferedPublishSocket::Options buffered_options;
    netio::pubsub::PublishSocket::Options unbuffered_options;
    std::size_t memory_bytes = 0;                  // unbuffered: of all messages lent at once
    std::optional<std::uint64_t> wait_subscribers; // absent: one if nothing has a rate, else none
    std::vector<StreamConfig> streams;
};

PublisherConfig load_publisher_config(const std::string& path);
// `file` is the name in errors; relative paths of sources are relative to `folder`.
PublisherConfig parse_publisher_config(const std::string& text, const std::string& file,
                                       const std::string& folder);

} // namespace apps
