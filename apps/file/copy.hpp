// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/recording/recording_reader.hpp"
#include "pubsub/recording/recording_writer.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace apps::file {

struct CopyReport {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
    std::vector<std::string> files;
};

// Writes the selected messages and events of all readers into a new recording, in the order of
// their times; at equal times, in the order of the readers. Throws RecordingError and
// std::system_error; then the new files are removed.
CopyReport copy_recordings(std::vector<netio::RecordingReader>& readers, const std::string& path,
                           netio::RecordingWriter::Options options,
                           const std::function<void()>& on_progress);

} // namespace apps::file
