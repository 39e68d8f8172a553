// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace apps::subscribe {

// Appends the messages of every fid to a separate file in a folder. Only one recorder uses the
// folder at a time:
//
//     FOLDER/<fid as 16 hex digits>          complete
//     FOLDER/<fid as 16 hex digits>.gap      finished, messages are missing
//     FOLDER/<fid as 16 hex digits>.part     not finished: being written, or left by an earlier run
//     FOLDER/<fid as 16 hex digits>.2.part   the same, if that name is in use; and so on
//
// Existing recordings are never changed unless the user requests it.

// What to do with existing recordings.
enum class Existing : std::uint8_t {
    refuse,
    append,    // append to finished recordings; refuse unfinished ones
    overwrite, // replace each when the new one is finished
};

class Recorder {
  public:
    using Fid = netio::pubsub::Fid;
    using FidRange = netio::pubsub::FidRange;

    // Creates the folder if it does not exist. Like all functions here, throws std::system_error
    // that names what failed, for instance if another recorder uses the folder or it has recordings
    // of these fids. On a file system without locks another recorder is not detected, and a warning
    // is logged.
    Recorder(std::string folder, std::span<const FidRange> fids,
             Existing existing = Existing::refuse, std::size_t open_limit = 256);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    void write(Fid fid, std::span<const std::byte> message);
    // Writes everything to the disk. Complete files get their final name, the others the suffix
    // .gap.
    void finish(const std::function<bool(Fid)>& is_whole);

    std::string path_of(Fid fid) const;

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    struct File {
        std::unique_ptr<std::FILE, Close> file; // null: temporarily closed
        unsigned number = 0;                    // in its temporary name; 0: not begun
        bool had_gap = false; // the recording that is appended to has the suffix .gap
    };
    void lock_folder();
    void refuse_existing(std::span<const FidRange> fids) const;
    void open(Fid fid, File& file);
    int begin(Fid fid, File& file) const;
    void close_oldest();
    void give_name(Fid fid, unsigned number, bool whole) const;
    std::string part_of(Fid fid, unsigned number) const;

    std::string folder_;
    Existing existing_;
    std::size_t open_limit_; // descriptors
    int folder_fd_ = -1;     // locked, if locks are available
    netio::pubsub::FidMap<std::unique_ptr<File>> files_;
    std::deque<Fid> open_; // oldest first
};

// A recorder on its own thread, so that a slow disk does not stop the loop. The loop's thread
// queues messages up to `queue_limit_bytes`; while the queue is full it receives nothing. Belongs
// to the loop's thread.

class BackgroundRecorder {
  public:
    static constexpr std::size_t queue_limit_bytes = std::size_t{64} << 20;

    struct Events { // called from the loop
        std::function<void()> on_writable;
        std::function<void(const std::string& why)> on_failure;
    };
    BackgroundRecorder(netio::EventLoop& loop, std::unique_ptr<Recorder> recorder, Events events);
    BackgroundRecorder(const BackgroundRecorder&) = delete;
    BackgroundRecorder& operator=(const BackgroundRecorder&) = delete;

    void write(netio::pubsub::Fid fid, std::span<const std::byte> message);
    bool is_full() const { return writer_.is_full(); }

    // Call after the loop. Waits until everything is on the disk. `whole` are the complete fids;
    // without this set no file gets its final name. Throws the recorder's errors, and
    // std::runtime_error if a signal ends the wait.
    void finish(std::optional<std::set<netio::pubsub::Fid>> whole);

  private:
    std::shared_ptr<std::unique_ptr<Recorder>>
        recorder_; // used by the thread, which may outlive this object
    BackgroundWriter writer_;
    netio::DescriptorWatch watch_;
};

} // namespace apps::subscribe
