// SPDX-License-Identifier: Apache-2.0
#pragma once

// The YAML configuration of one or several test publishers: what `netio publish` reads (config/ has
// commented examples, docs/configuration.md every key). The result is plain values; every mistake
// is a ConfigError (apps/publish/yaml_reader.hpp).

#include "apps/common/cli.hpp"
#include "apps/common/pattern.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/publish/message_plan.hpp"
#include "apps/publish/yaml_reader.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace apps {

// Where and how a publisher announces itself.
struct BusConfig {
    std::string where;     // empty: nowhere
    std::string name;      // empty: HOST-PID-N
    std::string advertise; // the host that others are told, for an address that stands for all
    std::chrono::milliseconds lease = netio::pubsub::BusOptions{}.lease;
};

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

struct PublisherConfig {
    std::string file;         // its name, for what only shows later
    std::string name;         // in the log and in reports
    std::size_t position = 0; // among those of the process
    std::vector<netio::Address> listen;
    BusConfig bus;
    KeyArguments keys;
    MetricsArguments metrics;
    bool buffered = true;
    netio::pubsub::Publisher::Options publisher; // of both modes
    netio::pubsub::BufferedPublishSocket::Options buffered_options;
    netio::pubsub::PublishSocket::Options unbuffered_options;
    std::size_t memory_bytes = 0;                  // unbuffered: of all messages lent at once
    std::optional<std::uint64_t> wait_subscribers; // absent: one if nothing has a rate, else none
    std::vector<TriggerConfig> triggers;
    std::vector<StreamConfig> streams;
    // Where keys that only a start can judge come from: "FILE:LINE:COLUMN: KEY", or an option of
    // the command line. An address of a list has a place of its own, "listen[1]".
    std::map<std::string, std::string, std::less<>> places;

    // "FILE: KEY" for a key that has none.
    std::string place_of(std::string_view key) const;
};

// Throws ConfigError: "PLACE: PROBLEM".
[[noreturn]] void refuse_at(const PublisherConfig& config, std::string_view key,
                            const std::string& problem);

// Returns make(). If it throws, the error names the place of the key, and the addresses as they are
// in the file: a check listens at port 0 instead.
template <typename Make>
auto told_at(const PublisherConfig& config, std::string_view key, Make make) {
    try {
        return make();
    } catch (const ConfigError&) {
        throw;
    } catch (const std::exception& error) {
        if (config.place_of(key).starts_with("--")) throw;
        refuse_at(config, key, error.what());
    }
}

struct PublishConfig {
    netio::FabricOptions fabric;
    netio::EventLoop::Options loop;
    std::size_t loops = 1;                   // each publisher is divided among so many
    std::vector<PublisherConfig> publishers; // one at least
};

PublishConfig load_publish_config(const std::string& path);
// `file` is the name in errors; relative paths of sources are relative to `folder`.
PublishConfig parse_publish_config(const std::string& text, const std::string& file,
                                   const std::string& folder);

} // namespace apps
