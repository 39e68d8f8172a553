// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace apps::file {

// Copies everything that is whole in an MCAP file, also of other programs, into a new file with a
// new summary. The chunks are copied as they are.

struct RepairReport {
    std::uint64_t chunks = 0;
    std::uint64_t messages = 0;
    std::uint64_t skipped_places = 0;
    std::uint64_t skipped_bytes = 0;
};

// Throws RecordingError and std::system_error; then the new file is removed. `on_progress` gets the
// number of bytes that were read.
RepairReport repair(const std::string& from, const std::string& to, std::size_t chunk_limit_bytes,
                    const std::function<void(std::uint64_t, std::uint64_t)>& on_progress);

} // namespace apps::file
