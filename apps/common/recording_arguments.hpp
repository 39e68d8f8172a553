// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/time.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/recording/recording_reader.hpp"
#include "pubsub/recording/recording_writer.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace apps {

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

// --compress, of the commands that write recordings.
void add_compression(CLI::App& command, netio::RecordingWriter::Compression& compression);

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
