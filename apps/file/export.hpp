// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/recording/recording_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace apps::file {

// Writes the selected messages of a recording in a form for other programs (docs/recording.md,
// "Export").

enum class ExportForm : std::uint8_t {
    raw,  // the bytes of the messages, one after the other
    csv,  // a line for each message: times, fid, sequence, status, size, bytes in hexadecimal
    hdf5, // a group for each fid
};

// The fields of messages of a fixed size, one after the other without gaps, little-endian. No I/O.
struct LayoutField {
    enum class Kind : std::uint8_t { signed_integer, unsigned_integer, real };

    std::string name;
    Kind kind = Kind::unsigned_integer;
    std::size_t element_bytes = 1; // 1, 2, 4 or 8; a real number has 4 or 8
    std::size_t count = 0;         // of the elements of an array; 0: a single value
    std::string unit;              // may be empty

    std::size_t bytes() const noexcept { return element_bytes * (count > 0 ? count : 1); }
};

// "time:u64:ns,adc:u16[8]:mV,gain:f32". Throws std::invalid_argument.
std::vector<LayoutField> parse_layout(std::string_view text);
std::size_t bytes_of(const std::vector<LayoutField>& layout) noexcept;

struct ExportReport {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t fids = 0;
};

// With hdf5 a non-empty layout gives the fields of the messages, which must all have its size.
// Creates the file, which must not exist ("-": standard output, not for hdf5), and removes it if it
// fails. Throws std::system_error, RecordingError, and std::runtime_error if the build has no HDF5.
ExportReport export_recording(netio::RecordingReader& reader, ExportForm form,
                              const std::string& path, const std::vector<LayoutField>& layout,
                              const std::function<void()>& on_progress);

} // namespace apps::file
