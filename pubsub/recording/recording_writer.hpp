// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records messages into MCAP files (docs/recording.md):
//
//     netio::RecordingWriter writer{"run7.mcap"};
//     netio::Subscriber subscriber{"127.0.0.1:12345"};
//     subscriber.subscribe({0, 63});
//     for (const netio::Message& message : subscriber)
//         if (writer.wait_until_writable(std::chrono::minutes{1})) (void)writer.write(message);
//     writer.close();
//
// A thread of its own writes to the disk. Messages are collected in chunks; a chunk is written as a
// whole when it is full or flush_interval old. A file that was not closed, because its process was
// killed, is a valid file up to its last whole chunk. A forked child process must not use a
// RecordingWriter of its parent; its destructor does nothing there.

#include "netio/base/export.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/process.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/message.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netio::inline v0_3 {

class NETIO_EXPORT RecordingWriter final {
  public:
    enum class Compression : std::uint8_t { none, lz4, zstd };

    struct Options {
        std::size_t chunk_size_bytes = std::size_t{4} << 20; // a larger message has its own chunk
        Compression compress = Compression::none;
        // With a limit a recording has several files, NAME-000001.mcap and so on. A file ends
        // before the chunk that would exceed its size, and before the chunk that begins this long
        // after its first message. 0: no limit.
        std::uint64_t rotate_size_bytes = 0;
        Duration rotate_interval{0};
        // Recording fails (on_failure) before the file system has fewer bytes available than this.
        std::uint64_t min_free_bytes = std::uint64_t{64} << 20;
        // Limit of the index of one file, which is kept in memory: at this limit a new file begins,
        // as at the limits above. Without rotation, the first file is then renamed to
        // NAME-000001.mcap.
        std::size_t index_limit_bytes = std::size_t{256} << 20;
        bool fsync = false; // once in flush_interval and at the end of a file
        // Bypasses the page cache where the file system permits it (stats().direct_io). Messages
        // are copied then.
        bool direct_io = false;
        // Limit of the bytes of messages that are not written yet. At least twice chunk_size_bytes.
        // The memory is used again for later messages, and released with the writer.
        std::size_t queue_limit_bytes = std::size_t{64} << 20;
        Duration flush_interval = std::chrono::seconds{1}; // a message waits no longer for others
        // The functions are called on the writer's thread. They must not call the writer.
        std::function<void()> on_writable{};                      // is_full() has become false
        std::function<void(const std::string& why)> on_failure{}; // once; recording has ended
    };

    struct Entry {
        Fid fid{};
        std::span<const std::byte> bytes{};
        std::uint8_t status = 0;
        // Within the fid; nullopt: one more than the last one and the lost ones after it.
        std::optional<std::uint64_t> sequence{};
        std::uint64_t lost_before = 0;             // messages of the fid before this one
        std::uint64_t arrival_ns = 0;              // since 1970; 0: now
        std::optional<std::uint64_t> publish_ns{}; // the publisher's time, if it sent one
        std::string_view publisher{};              // HOST:PORT; empty: not known
    };

    struct Event {
        std::string_view event; // one of the words in docs/recording.md
        std::string_view publisher{};
        FidSet fids{};
        std::optional<std::uint64_t> count{};
        std::string_view reason{};
        std::uint64_t arrival_ns = 0; // since 1970; 0: now
    };

    // Creates the first file; its name must end in ".mcap". Throws std::system_error if that fails,
    // also because the file exists, and std::invalid_argument for an invalid option.
    explicit RecordingWriter(std::string path);
    RecordingWriter(std::string path, Options options);
    // Closes as close() does; errors are ignored.
    ~RecordingWriter();
    RecordingWriter(const RecordingWriter&) = delete;
    RecordingWriter& operator=(const RecordingWriter&) = delete;

    // The functions below may be called on any thread. Messages are recorded in the order of the
    // calls. None waits for the disk, except where stated.

    // Copies the message. Returns `again` if is_full(), and `closed` after a failure or close().
    Status write(const Entry& entry);
    // As write(entry), but does not copy the message if it has at least kept_from_bytes and
    // writes_from_memory() is true: it is written from `memory`, which contains entry.bytes.
    Status write(const Entry& entry, KeptBytes memory);
    // Records the message with the publisher's time, unless that is of the publisher's own clock
    // (StampClock::own), which is not UTC.
    Status write(const Message& message);
    Status write(const KeptMessage& message);
    static constexpr std::size_t kept_from_bytes = 4096;
    bool writes_from_memory() const noexcept; // neither compression nor direct_io

    // Reports that `count` messages of the fid were lost: the sequence of its next message is
    // larger by `count`.
    void skip(Fid fid, std::uint64_t count);
    // Records an event. Returns `again` if the queue is full also for events, which have 1 MiB more
    // than messages.
    Status write(const Event& event);

    // True from when queue_limit_bytes are queued until half of them are written.
    bool is_full() const;
    // Waits until is_full() is false. Returns false after the time-out, a failure or close().
    bool wait_until_writable(std::chrono::milliseconds timeout);
    // Waits until everything is in the file. Throws as close() does.
    void flush();
    // Writes what is queued and the index of the file; waits. Throws std::system_error, or
    // std::runtime_error at min_free_bytes, if a message could not be written; what was written
    // before can be read. Later calls return at once.
    void close();

    struct Stats {
        std::uint64_t messages = 0;    // accepted
        std::uint64_t bytes = 0;       // of those
        std::uint64_t written = 0;     // messages in files
        std::uint64_t discarded = 0;   // accepted, and not written because of the failure
        std::uint64_t events = 0;      // accepted
        std::uint64_t chunks = 0;      // in files
        std::uint64_t file_bytes = 0;  // of all files
        std::uint64_t clock_steps = 0; // back, by more than a millisecond
        std::size_t queued_bytes = 0;
        bool direct_io = false;         // in use
        std::vector<std::string> files; // in order
        std::string failure;            // empty: none
    };
    Stats stats() const;

  private:
    struct Impl;
    static constexpr char type[] = "RecordingWriter";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::inline v0_3
