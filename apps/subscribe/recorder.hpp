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

// Writes the messages of every fid, one behind the other, to a file of its own in a folder that
// belongs to one recorder at a time:
//
//     FOLDER/<fid as 16 hex digits>          whole
//     FOLDER/<fid as 16 hex digits>.gap      finished, and something is missing
//     FOLDER/<fid as 16 hex digits>.part     not finished: being written, or left behind
//     FOLDER/<fid as 16 hex digits>.2.part   the same, where that name is taken; and so on
//
// What is there already is never touched unless the user says so.

// What to do with recordings that are there already.
enum class Existing : std::uint8_t {
    refuse,
    append,    // go on behind those that were finished; refuse those that were not
    overwrite, // replace each when its successor is finished
};

class Recorder {
  public:
    using Fid = netio::pubsub::Fid;
    using FidRange = netio::pubsub::FidRange;

    // Makes the folder if it is not there. Throws std::system_error naming what failed, as do all:
    // another recorder has the folder, or it holds recordings of these fids. On a file system
    // without locks another recorder is not noticed, and it warns.
    Recorder(std::string folder, std::span<const FidRange> fids,
             Existing existing = Existing::refuse, std::size_t open_limit = 256);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    void write(Fid fid, std::span<const std::byte> message);
    // Everything is on the disk; what is whole has its final name, the rest the suffix .gap.
    void finish(const std::function<bool(Fid)>& is_whole);

    std::string path_of(Fid fid) const;

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    struct File {
        std::unique_ptr<std::FILE, Close> file; // null: closed for the moment
        unsigned number = 0;                    // of its temporary name; 0: not begun
        bool had_gap = false;                   // what is appended to
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
    int folder_fd_ = -1;     // locked, where that is possible
    netio::pubsub::FidMap<std::unique_ptr<File>> files_;
    std::deque<Fid> open_; // the oldest first
};

// A recorder on a thread of its own, so that a slow disk does not stop the loop. The loop's thread
// queues messages up to `queue_limit_bytes`; while the queue is full it receives nothing. Belongs
// to the loop's thread.

class BackgroundRecorder {
  public:
    static constexpr std::size_t queue_limit_bytes = std::size_t{64} << 20;

    struct Events { // in a turn of the loop
        std::function<void()> on_writable;
        std::function<void(const std::string& why)> on_failure;
    };
    BackgroundRecorder(netio::EventLoop& loop, std::unique_ptr<Recorder> recorder, Events events);
    BackgroundRecorder(const BackgroundRecorder&) = delete;
    BackgroundRecorder& operator=(const BackgroundRecorder&) = delete;

    void write(netio::pubsub::Fid fid, std::span<const std::byte> message);
    bool is_full() const { return writer_.is_full(); }

    // After the loop: waits until everything is on the disk. These fids are whole; without a set no
    // file gets its final name. Throws what the recorder throws, and std::runtime_error if a signal
    // ends the wait.
    void finish(std::optional<std::set<netio::pubsub::Fid>> whole);

  private:
    std::shared_ptr<std::unique_ptr<Recorder>> recorder_; // the thread's, which may outlive this
    BackgroundWriter writer_;
    netio::DescriptorWatch watch_;
};

} // namespace apps::subscribe
