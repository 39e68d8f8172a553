// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "apps/copy/protocol.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

namespace apps::copy {

// Finds data and holes of a sparse file; holes read as zeros and need no space on the disk
// (lseek(2), SEEK_DATA). On a file system without this information the whole file is data.

// Returns the first data at or after `from`, cut at `end`; an empty extent at `end` if there is
// none.
Extent find_data(int fd, std::uint64_t from, std::uint64_t end) noexcept;

// Appends large amounts of data to a file at the speed of its disk. Aligned data bypasses the page
// cache (O_DIRECT, open(2)), because copying it there and writing it back later costs more than the
// disk needs. The rest, and everything on file systems without O_DIRECT, goes through the cache,
// and is written to the disk soon (sync_file_range(2)). Blocks. Data is guaranteed to be on the
// disk only after fsync.

class BulkWriter {
  public:
    // Memory and position must be multiples of this to bypass the cache: the largest block size of
    // common disks.
    static constexpr std::size_t alignment_bytes = 4096;

    BulkWriter() = default; // must not be written to
    // Appends at `position`. The caller keeps the descriptor, which is open for writing, and must
    // not read from it any more.
    BulkWriter(int fd, std::uint64_t position, bool past_cache) noexcept
        : fd_{fd}, position_{position}, flushed_{position}, may_bypass_{past_cache} {}

    // Throws std::system_error; bytes written before the failure count.
    void write(std::span<const std::byte> bytes);

    // Continues at a later position; the bytes in between are a hole.
    void skip_to(std::uint64_t position) noexcept { position_ = flushed_ = position; }

    std::uint64_t position_bytes() const noexcept { return position_; }
    // Bytes written without the cache.
    std::uint64_t bypassed_bytes() const noexcept { return bypassed_; }

  private:
    bool set_bypass(bool on) noexcept;
    void flush();

    int fd_ = -1;
    std::uint64_t position_ = 0;
    std::uint64_t flushed_ = 0;
    std::uint64_t bypassed_ = 0;
    bool may_bypass_ = false;
    bool bypasses_ = false;
};

} // namespace apps::copy

namespace netio::inline v0_3 {
class EventLoop;
} // namespace netio::inline v0_3

namespace apps::copy {

// Runs blocking disk operations outside of the event loop: tasks run one after another, and the
// outcome of each is reported on the loop's thread. In the program it is a separate thread
// (DiskThread); in simulated worlds it takes virtual time and can fail.

class Disk {
  public:
    // An exception is reported as the problem. Long tasks check the token regularly.
    using Task = std::function<void(std::stop_token)>;
    // Runs on the loop's thread; the problem is empty if there was none.
    using Then = std::function<void(const std::string& problem)>;

    Disk() = default;
    // May be destroyed within a Then callback. Drops the queued tasks, asks the running task to
    // stop, waits for it, and makes no further callbacks.
    virtual ~Disk() = default;
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    // Call before the first run(); may be repeated. Throws FabricError if a thread or a descriptor
    // is not available.
    virtual void start() = 0;
    virtual bool is_started() const noexcept = 0;
    virtual void run(Task task, Then then) = 0;
    // Drops the queued tasks without callbacks. Asks the running task to stop; its outcome is still
    // reported.
    virtual void drop() = 0;
};

using MakeDisk = std::function<std::unique_ptr<Disk>(netio::EventLoop& loop)>;

// The thread that executes them on the disk.
//
//     DiskThread disk{loop};
//     disk.start();
//     disk.run([&](std::stop_token) { file.write(bytes); },
//              [&](const std::string& problem) { if (problem.empty()) ... });
//
// Owned by the object whose memory the tasks use. Belongs to the loop's thread.

class DiskThread final : public Disk {
  public:
    static std::unique_ptr<Disk> make(netio::EventLoop& loop) {
        return std::make_unique<DiskThread>(loop);
    }
    explicit DiskThread(netio::EventLoop& loop) : loop_{loop} {}
    ~DiskThread() override;

    void start() override; // throws FabricError if no thread or descriptor is available
    bool is_started() const noexcept override { return thread_.joinable(); }
    void run(Task task, Then then) override;
    void drop() override;
    // Returns true if no task is queued, running, or waiting for its callback.
    bool is_idle() const noexcept { return outstanding_ == 0; }

  private:
    struct Work {
        Task task;
        Then then;
    };
    struct Outcome {
        Then then;
        std::string problem;
    };
    void serve(const std::stop_token& ending);
    void tell();

    netio::EventLoop& loop_;
    Descriptor wake_; // an eventfd, written after every outcome
    std::optional<netio::DescriptorWatch> watch_;
    std::size_t outstanding_ = 0;
    bool* destroyed_ = nullptr;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Work> queue_;
    std::deque<Outcome> outcomes_;
    std::stop_source stop_task_; // of the running task and the tasks dropped with it
    std::jthread thread_;
};

} // namespace apps::copy
