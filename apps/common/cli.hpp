// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_options.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/recording/recording_reader.hpp"
#include "pubsub/recording/recording_writer.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"
#include "stream/socket/stream_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace apps {

// Options that several commands share, and their parsing. A wrong value ends the parsing with one
// line that names the option, the value and the allowed values (apps/common/parse.hpp).
struct Limits {
    std::uint64_t min = 1;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

CLI::Option* add_count(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help,
                       Limits limits = {});
// The help shows the default.
CLI::Option* add_count(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits);
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits);
CLI::Option* add_bytes(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help, Limits limits);
// From 1 ms to 1 day; 0 only if it is accepted.
enum class Zero : std::uint8_t { refused, taken };
CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value,
                         const std::string& help, Zero zero);
CLI::Option* add_milliseconds(CLI::App& command, const std::string& name,
                              std::chrono::milliseconds& value, const std::string& help, Zero zero);
// Checks that an option has one of these words: check(one_of({...})). The error suggests the
// nearest word.
std::function<std::string(const std::string&)> one_of(std::vector<std::string_view> words);
// Adds an option with one of these words as value; calls `choose` with the word's position.
CLI::Option* add_words(CLI::App& command, const std::string& name,
                       std::vector<std::string_view> words, std::function<void(std::size_t)> choose,
                       const std::string& help);
// --loop: blocking, busy or adaptive.
CLI::Option* add_loop(CLI::App& command, netio::LoopMode& value);
// --provider: auto or a supported provider, whether or not this machine has it.
CLI::Option* add_provider(CLI::App& command, std::string& value);
// --bus: where publishers are found (pubsub/discovery/bus.hpp).
CLI::Option* add_bus(CLI::App& command, std::string& value);
// --decode-fids: the layout whose fields are used to show fids.
CLI::Option* add_decoding(CLI::App& command, std::string& value);
// --allow-remote-anonymous, for a command that listens.
CLI::Option* add_allow_remote_anonymous(CLI::App& command, bool& value);
CLI::Option* add_duration(CLI::App& command, const std::string& name,
                          std::optional<netio::Duration>& value, const std::string& help);

// Checks the two ends of a range of sizes. Throws std::invalid_argument if `least` exceeds `most`.
void require_order(std::string_view least_option, std::uint64_t least, std::string_view most_option,
                   std::uint64_t most);
// Parses an address to connect to. Throws std::invalid_argument as netio::parse_address(), and for
// port 0.
netio::Address peer_address(std::string_view text);

// Options for the connections of a command (netio/session/session_options.hpp). The help shows
// their defaults.

// Timeouts and heartbeats.
void add_session_times(CLI::App& command, netio::SessionOptions& session);
// Options for the receive buffers.
void add_receive_buffers(CLI::App& command, netio::SessionOptions& session);
// The option for the largest message of a peer.
void add_largest_message(CLI::App& command, std::size_t& bytes);
// The option for the limit up to which a subscriber's buffers grow to the size of a publisher's
// pages.
void add_receive_buffer_limit(CLI::App& command, std::size_t& bytes);
// Options for the waits between attempts to connect.
void add_retry_times(CLI::App& command, std::chrono::milliseconds& interval,
                     std::chrono::milliseconds& limit);
// All options above for a command that subscribes, its local address, and the limit of fids.
void add_subscriber(CLI::App& command, std::string& local_host,
                    netio::pubsub::SubscribeSocket::Options& socket);

// --progress and --json, for a command with a report at its end.
void add_progress(CLI::App& command, bool& value);
void add_json(CLI::App& command, bool& value);

// --remote-writes, for the commands that use the byte stream.

CLI::Option* add_remote_writes(CLI::App& command, netio::stream::RemoteWrites& value);

// Keys of clients and servers.
struct KeyArguments {
    std::string key;                               // client
    std::string protection;                        // client
    std::string keys;                              // server
    std::string min_protection;                    // server
    std::vector<std::string> advertised_addresses; // server
    std::optional<std::uint64_t> connections_per_host;
    std::chrono::milliseconds look_interval = netio::ServerKeys::Options{}.look_interval;
};

// --key FILE and --protection LEVEL for a command that connects; --keys FILE, --min-protection
// LEVEL and related options for a command that listens.
void add_key(CLI::App& command, KeyArguments& arguments);
void add_keys(CLI::App& command, KeyArguments& arguments);

// Null without --key. Throws as ClientKey.
std::shared_ptr<const netio::ClientKey> client_key(const KeyArguments& arguments);

// Null without --keys. Throws as ServerKeys. The loop must outlive them.
std::shared_ptr<netio::ServerKeys> server_keys(netio::EventLoop& loop,
                                               const KeyArguments& arguments);

// For a command with its own limit of connections per host: raises the limit of the keys to that
// limit, unless the user set the limit of the keys.
KeyArguments permitting(KeyArguments arguments, std::size_t of_one_host);

// Options of the commands that read or write recordings, and times as users write them: "10s" is
// relative to the beginning of the recording, "2026-11-27T17:46:09.5Z" is absolute, in UTC.

struct RecordingArguments {
    std::vector<std::string> files;
    std::vector<std::string> fids;
    std::string from;
    std::string until;
    std::size_t chunk_memory_limit_bytes =
        netio::RecordingReader::Options{}.chunk_memory_limit_bytes;
};

// FILE... and --chunk-memory-limit.
void add_recordings(CLI::App& command, RecordingArguments& arguments);
// --fid, --from and --until.
void add_recording_selection(CLI::App& command, RecordingArguments& arguments);

// --compress and --min-free, of the commands that write recordings.
void add_compression(CLI::App& command, netio::RecordingWriter::Compression& compression);
void add_min_free(CLI::App& command, std::uint64_t& bytes);

using netio::RecordingTime;

// Returns nullopt for other texts.
std::optional<RecordingTime> parse_recording_time(std::string_view text, RecordingTime begin);
// "2026-11-27T17:46:09.500000000Z"
std::string shown(RecordingTime time);

// Opens the files and applies the selection. Throws RecordingError, and std::invalid_argument for a
// wrong value.
netio::RecordingReader open_recording(
    const RecordingArguments& arguments,
    netio::RecordingReader::OnDamage on_damage = netio::RecordingReader::OnDamage::refuse);

} // namespace apps
