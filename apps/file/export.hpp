// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "pubsub/recording/mcap_file.hpp"
#include "pubsub/recording/recording_error.hpp"
#include "pubsub/recording/recording_reader.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps::file {

// Throws RecordingError: the file exists.
[[noreturn]] inline void refuse_existing(const std::string& path) {
    throw netio::RecordingError{path +
                                ": exists; nothing is overwritten: give the name of a new file"};
}

// A new file, removed by the destructor unless it was finished; "-" is standard output. Functions
// throw std::system_error that names the file, the constructor also RecordingError.
class NewFile {
  public:
    explicit NewFile(std::string path) : path_{std::move(path)} {
        if (path_ == "-") {
            file_ = stdout;
            return;
        }
        file_ = std::fopen(path_.c_str(), "wxbe");
        if (file_ == nullptr && errno == EEXIST) refuse_existing(path_);
        if (file_ == nullptr) netio::mcap::throw_file_error("cannot create", path_, errno);
    }
    ~NewFile() {
        if (file_ == nullptr || file_ == stdout) return;
        std::fclose(file_);
        ::unlink(path_.c_str());
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    void write(std::span<const std::byte> bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(errno);
        size_ += bytes.size();
    }
    void write(std::string_view text) { write(std::as_bytes(std::span{text})); }
    std::uint64_t size() const noexcept { return size_; } // bytes written

    // Waits until a file is on the disk.
    void finish() {
        if (std::fflush(file_) != 0) fail(errno);
        if (file_ == stdout) return;
        if (!sync_file(::fileno(file_))) fail(errno);
        std::FILE* const closed = std::exchange(file_, nullptr);
        if (std::fclose(closed) == 0) return;
        const int error = errno;
        ::unlink(path_.c_str());
        fail(error);
    }

  private:
    [[noreturn]] void fail(int error) const {
        netio::mcap::throw_file_error("cannot write to", path_ == "-" ? "standard output" : path_,
                                      error);
    }

    std::string path_;
    std::FILE* file_ = nullptr; // null: finished
    std::uint64_t size_ = 0;
};

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

// What RecordingReader does not need if the summary is whole, but other programs read: the records
// between the chunks. Returns damage, and what contradicts the chunks or the summary. Throws
// RecordingError.
std::vector<netio::RecordingReader::Damage>
check_between_chunks(const netio::RecordingReader::File& file, std::size_t chunk_limit_bytes,
                     const std::function<void(std::uint64_t)>& on_progress);

// Copies everything that is whole in an MCAP file, also of other programs, into a new file with a
// new summary. The chunks are copied as they are.

struct RepairReport {
    std::uint64_t chunks = 0;
    std::uint64_t messages = 0;
    std::uint64_t skipped_places = 0;
    std::uint64_t skipped_bytes = 0;
    std::uint64_t lost_channels = 0; // without a whole record: the fid is not known
    std::uint64_t lost_channel_messages = 0;
};

// Throws RecordingError and std::system_error; then the new file is removed. `on_progress` gets the
// number of bytes that were read.
RepairReport repair(const std::string& from, const std::string& to, std::size_t chunk_limit_bytes,
                    const std::function<void(std::uint64_t, std::uint64_t)>& on_progress);

} // namespace apps::file
