// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/file/export.hpp"

#include <functional>
#include <string>
#include <vector>

namespace apps::file {

// HDF5 (docs/recording.md, "HDF5"): a group for each fid with the datasets arrival_time,
// publish_time, sequence and status, and the messages: `data` with a row for each message if all
// have the same size (of a compound type if there is a layout), else `bytes` and `offsets`. Reads
// the recording twice: the first time for the sizes.

// Throws std::runtime_error if this build has no HDF5.
void require_hdf5();

// The file must not exist. Throws as export_recording().
ExportReport export_hdf5(netio::RecordingReader& reader, const std::string& path,
                         const std::vector<LayoutField>& layout,
                         const std::function<void()>& on_progress);

} // namespace apps::file
