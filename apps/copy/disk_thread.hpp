// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace netio::inline v0_3 {
class EventLoop;
} // namespace netio::inline v0_3

namespace apps::copy {

// Runs blocking disk operations outside of the event loop: tasks run one after another, and the
// outcome of each is reported on the loop's thread. In the program it is a separate thread
// (apps/copy/disk_thread.hpp); in simulated worlds it takes virtual time and can fail.

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

// The disk's thread (apps/copy/disk_thread.hpp).
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
