// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread for what blocks on a disk, so that an event loop does not: tasks run there one after
// another, and the outcome of each is told on the loop's thread.
//
//     DiskThread disk{loop};
//     disk.start();
//     disk.run([&](std::stop_token) { file.write(bytes); },
//              [&](const std::string& problem) { if (problem.empty()) ... });
//
// Owned by the object whose memory the tasks use. Belongs to the loop's thread; may be destroyed
// where it tells. The destructor drops what has not begun, asks the running task to stop, waits for
// it, and tells nothing any more.

#include "apps/common/descriptor.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace apps::copy {

class DiskThread {
  public:
    // Runs on the thread; what it throws is the problem. Long ones ask the token now and then.
    using Task = std::function<void(std::stop_token)>;
    // Runs on the loop's thread; the problem is empty if there was none.
    using Then = std::function<void(const std::string& problem)>;

    explicit DiskThread(netio::EventLoop& loop) : loop_{loop} {}
    ~DiskThread();
    DiskThread(const DiskThread&) = delete;
    DiskThread& operator=(const DiskThread&) = delete;

    // Makes the thread, before the first run(). Twice is legal. Throws FabricError: no thread or no
    // descriptor is left.
    void start();
    bool is_started() const noexcept { return thread_.joinable(); }
    void run(Task task, Then then);
    // Drops the tasks that have not begun; nothing is told of them. The running one is asked to
    // stop, and its outcome is told.
    void drop();
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
