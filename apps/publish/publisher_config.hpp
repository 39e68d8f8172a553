// SPDX-License-Identifier: Apache-2.0
#pragma once

// The YAML configuration of one or several test publishers, which `netio publish` reads (config/
// has commented examples, docs/configuration.md lists every key). The result is plain values; every
// mistake is a ConfigError (apps/publish/config_table.hpp).

#include "apps/common/cli.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/player.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/publish/config_table.hpp"
#include "apps/publish/message_plan.hpp"
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
    std::string advertise; // the host to announce instead of a wildcard address
    std::chrono::milliseconds lease = netio::pubsub::BusOptions{}.lease;
};

struct PatternConfig { // self-checking messages (apps/common/pattern.hpp)
    FaultConfig faults;
};
struct FileConfig {
    std::vector<std::string> paths; // one for all fids, or one for each
    bool repeat = false;
};
struct PipeConfig {}; // standard input
// The messages of a recording, with their fids, in the recorded order. The stream's fids are
// published, the others are skipped.
struct RecordingConfig {
    std::string path;
    std::optional<double> factor = 1; // of the recorded pace; nullopt: as fast as possible
    replay::FidReplacements replacements;
    std::string from; // as RecordingArguments has it
    std::string until;
    std::uint64_t repeat = 1;
    bool sends_recorded_times = false;
};
using SourceConfig = std::variant<PatternConfig, FileConfig, PipeConfig, RecordingConfig>;

// Header before each message: up to 8 bytes, or the event number in 8 bytes.
struct HeaderConfig {
    std::vector<std::byte> bytes;
    bool event = false;
};
std::size_t bytes_of(const HeaderConfig& header);

// All fids of its streams publish the same event together.
struct TriggerConfig {
    std::string name;
    RateConfig rate;
    std::uint64_t seed = 1;
};

struct StreamConfig {
    std::vector<netio::pubsub::FidRange> fids;
    std::string meaning; // description, shown on a bus
    SourceConfig source;
    Sizes sizes;
    std::uint64_t seed = 1;
    std::optional<RateConfig> rate;     // absent: as fast as subscribers accept
    std::optional<std::size_t> trigger; // index of the publisher's trigger, instead of a rate
    HeaderConfig header;
    std::size_t slices = 1;             // number of memory areas of a message (gather)
    std::optional<std::uint64_t> count; // messages per fid; absent: until the source ends
    std::uint8_t status = 0;
};

struct PublisherConfig {
    std::string file;         // its name, for errors that appear at the start
    std::string name;         // in the log and in reports
    std::size_t position = 0; // index among the publishers of the process
    std::vector<netio::Address> listen;
    BusConfig bus;
    KeyArguments keys;
    MetricsArguments metrics;
    bool buffered = true;
    netio::pubsub::Publisher::Options publisher; // of both modes
    netio::pubsub::BufferedPublishSocket::Options buffered_options;
    netio::pubsub::PublishSocket::Options unbuffered_options;
    std::size_t memory_bytes = 0;                  // unbuffered: memory for all messages in flight
    std::optional<std::uint64_t> wait_subscribers; // absent: 1 if no stream has a rate, else 0
    std::vector<TriggerConfig> triggers;
    std::vector<StreamConfig> streams;
    // Places of keys that are checked only at the start: "FILE:LINE:COLUMN: KEY", or an option of
    // the command line. An address in a list has its own place, "listen[1]".
    std::map<std::string, std::string, std::less<>> places;

    // Returns the place of the key, or "FILE: KEY" if it has none.
    std::string place_of(std::string_view key) const;
};

// Throws ConfigError: "PLACE: PROBLEM".
[[noreturn]] void refuse_at(const PublisherConfig& config, std::string_view key,
                            const std::string& problem);

// Returns make(). If it throws, the error names the place of the key and the addresses as written
// in the file, because a check listens at port 0 instead.
template <typename Make>
auto with_config_key(const PublisherConfig& config, std::string_view key, Make make) {
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
    std::size_t loops = 1;                   // each publisher is divided among this number of loops
    std::vector<PublisherConfig> publishers; // at least one
};

PublishConfig load_publish_config(const std::string& path);
// `file` is the file's name in errors; relative paths of sources are relative to `folder`.
PublishConfig parse_publish_config(const std::string& text, const std::string& file,
                                   const std::string& folder);

} // namespace apps
