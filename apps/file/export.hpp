// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/recording/recording_reader.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace apps::file {

// Writes the selected messages of a recording in a form for other programs (docs/recording.md,
// "Export").

enum class ExportForm : std::uint8_t {
    raw,  // the bytes of the messages, one after the other
    csv,  // a line for each message: times, fid, sequence, status, size, bytes in hexadecimal
    hdf5, // a group for each fid
};

struct ExportReport {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t fids = 0;
};

// Creates the file, which must not exist ("-": standard output, not for hdf5), and removes it if it
// fails. Throws std::system_error, RecordingError, and std::runtime_error if the build has no HDF5.
ExportReport export_recording(netio::RecordingReader& reader, ExportForm form,
                              const std::string& path, const std::function<void()>& on_progress);

} // namespace apps::file
