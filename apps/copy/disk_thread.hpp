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

// Where what blocks on a disk is done, so that an event loop does not: tasks one after another, and
// the outcome of each is told on the loop's thread. A thread of its own in the program
// (apps/copy/disk_thread.hpp); in simulated worlds something that takes virtual time and fails.

class Disk {
  public:
    // What it throws is the problem. Long ones ask the token now and then.
    using Task = std::function<void(std::stop_token)>;
    // Runs on the loop's thread; the problem is empty if there was none.
    using Then = std::function<void(const std::string& problem)>;

    Disk() = default;
    // May be destroyed where it tells. Drops what has not begun, asks the running task to stop,
    // waits for it, and tells nothing any more.
    virtual ~Disk() = default;
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    // Before the first run(). Twice is legal. Throws FabricError: what it needs is not there.
    virtual void start() = 0;
    virtual bool is_started() const noexcept = 0;
    virtual void run(Task task, Then then) = 0;
    // Drops the tasks that have not begun; nothing is told of them. The running one is asked to
    // stop, and its outcome is told.
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

    void start() override; // throws FabricError: no thread or no descriptor is left
    bool is_started() const noexcept override { return thread_.joinable(); }
    void run(Task task, Then then) override;
    void drop() override;
    // Nothing is queued, running, or still to be told.
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
    Descriptor wake_; // an eventfd, written behind every outcome
    std::optional<netio::DescriptorWatch> watch_;
    std::size_t outstanding_ = 0;
    bool* destroyed_ = nullptr;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Work> queue_;
    std::deque<Outcome> outcomes_;
    std::stop_source stop_task_; // of the running task and of those dropped with it
    std::jthread thread_;
};

} // namespace apps::copy
