// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads recordings: files of `netio record` or of a RecordingWriter, one or a rotated set, in the
// order in which they were recorded (docs/recording.md).
//
//     netio::RecordingReader reader{"run7.mcap"};
//     reader.select({.fids = netio::FidSet{{0, 63}}});
//     while (reader.next())
//         if (!reader.event())
//             std::cout << reader.message().fid << ": " << reader.message().bytes.size() << '\n';
//
// With the summary of a complete file, only the chunks with selected fids and times are read; a
// file without one, because its writer was killed, is scanned. Belongs to one thread at a time.

#include "netio/base/export.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/recording/recording_error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// Nanoseconds since the Unix epoch, UTC.
using RecordingTime = std::chrono::sys_time<std::chrono::nanoseconds>;

struct RecordedMessage {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint64_t sequence = 0; // within its fid: numbers that are absent are lost messages
    RecordingTime arrival_time{};
    RecordingTime publish_time{}; // the arrival time unless has_publish_time
    bool has_publish_time = false;
    std::span<const std::byte> bytes{}; // valid until the next call of a RecordingReader
    std::string_view publisher{};       // HOST:PORT; valid as long as bytes
};

// What happened during the recording. Members that do not apply are empty.
struct RecordedEvent {
    RecordingTime time{};
    std::string event; // "lost", "connected", ... (docs/recording.md)
    std::string publisher;
    std::string fids;
    std::string reason;
    std::optional<std::uint64_t> count;
};

class NETIO_EXPORT RecordingReader final {
  public:
    enum class OnDamage : std::uint8_t {
        refuse, // next() throws RecordingError
        skip,   // continues with the next undamaged chunk; damage() lists what was skipped
    };
    struct Options {
        // Limit of a chunk in memory, uncompressed, and of the chunk in the file. A file with a
        // larger one is refused. At most three times as much memory is used.
        std::size_t chunk_memory_limit_bytes = std::size_t{256} << 20;
        OnDamage on_damage = OnDamage::refuse;
        // Whether a file that ends within a record is refused. Otherwise what is whole is read, and
        // torn() reports the rest.
        bool refuse_torn = false;
    };
    // Which messages next() visits. Events are visited if their time is selected.
    struct Selection {
        FidSet fids{};                        // empty: all
        std::optional<RecordingTime> from{};  // arrival time
        std::optional<RecordingTime> until{}; // exclusive
    };

    // `path`: a file, a folder with recordings, or the name of a rotated set without its numbers
    // (run.mcap for run-000001.mcap, run-000002.mcap, ...). Throws RecordingError if there is none,
    // a part is absent, or a file is not MCAP or of a newer version.
    explicit RecordingReader(const std::string& path) : RecordingReader{path, Options{}} {}
    RecordingReader(const std::string& path, const Options& options);
    // Several paths, read one after the other.
    RecordingReader(std::span<const std::string> paths, const Options& options);
    ~RecordingReader();
    RecordingReader(RecordingReader&&) noexcept;
    RecordingReader& operator=(RecordingReader&&) noexcept;

    // Sets what next() visits, and goes to the beginning.
    void select(Selection selection);
    // Goes to the beginning.
    void rewind();

    // Goes to the next message or event. Returns false at the end. Throws RecordingError for damage
    // (unless it is skipped), an error of the disk, and a newer version of netio's messages.
    bool next();
    // The message to which next() has gone; only if event() is null. Valid until the next call of
    // next(), select() or rewind().
    const RecordedMessage& message() const noexcept;
    // The event to which next() has gone; null if it has gone to a message. Valid as long as
    // message().
    const RecordedEvent* event() const noexcept;

    struct File {
        std::string path;
        std::uint64_t bytes = 0;
        bool has_summary = false; // its writer has closed it
        std::string profile;
        std::string library;
        // Of the metadata record "netio": run, part, host, version.
        std::vector<std::pair<std::string, std::string>> properties;
        // The number of messages and events, from the summary; set after next() has reached the
        // file.
        std::optional<std::uint64_t> messages;
    };
    // In the order of reading.
    std::span<const File> files() const noexcept;
    // The time of the first message or event; nullopt if there is none. Does not change the
    // position of next(). Throws RecordingError.
    std::optional<RecordingTime> begin_time();

    struct Damage {
        std::string path;
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0; // that were not read
        std::string problem;
    };
    static constexpr std::size_t damage_limit = 1000; // further damage is only counted
    // Since the last rewind(): skipped parts, and ends of files within a record.
    std::span<const Damage> damage() const noexcept;
    std::span<const Damage> torn() const noexcept;
    std::uint64_t damage_count() const noexcept;
    // Messages of channels that are not netio's.
    std::uint64_t foreign_messages() const noexcept;
    // Messages and events whose time was before that of the previous one. Zero in a file of netio.
    std::uint64_t backward_steps() const noexcept;

    // For a progress display: the bytes of all files, and how many of them next() has passed.
    std::uint64_t total_bytes() const noexcept;
    std::uint64_t passed_bytes() const noexcept;

  private:
    class State;
    std::unique_ptr<State> state_;
};

// The files that a path of a RecordingReader names, in order. Throws RecordingError as its
// constructor does.
NETIO_EXPORT std::vector<std::string> recording_files(const std::string& path);

} // namespace netio::inline v0_3
