// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where what blocks on a disk is done, so that an event loop does not: tasks one after another, and
// the outcome of each is told on the loop's thread. A thread of its own in the program
// (apps/copy/disk_thread.hpp); in simulated worlds something that takes virtual time and fails.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace netio::inline v0_2 {
class EventLoop;
}

namespace apps::copy {

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

} // namespace apps::copy
