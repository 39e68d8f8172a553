// SPDX-License-Identifier: Apache-2.0
#pragma once

// A disk in virtual time: tasks run on real files when their time has come, one after another and
// without a thread. The disk may be slow, blocked or full.

#include "apps/copy/disk.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_loop.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace netio::world {

// Shared by all disks of a process.
struct DiskState {
    Duration per_task = std::chrono::microseconds{50};
    TimePoint stuck_until{}; // no task runs before
    bool full = false;       // every task fails
};

class SimDisk final : public apps::copy::Disk {
  public:
    SimDisk(EventLoop& loop, std::shared_ptr<const DiskState> state)
        : loop_{loop}, state_{std::move(state)}, timer_{loop, [this] { carry_out(); }} {}

    void start() override { started_ = true; }
    bool is_started() const noexcept override { return started_; }
    void run(Task task, Then then) override {
        queue_.push_back({.task = std::move(task), .then = std::move(then), .stop = {}});
        if (!timer_.armed()) begin();
    }
    // Keeps the first task, which is running.
    void drop() override {
        if (queue_.empty()) return;
        queue_.front().stop.request_stop();
        queue_.erase(queue_.begin() + 1, queue_.end());
    }

  private:
    struct Work {
        Task task;
        Then then;
        std::stop_source stop;
    };

    void begin() { timer_.start(std::max(state_->per_task, state_->stuck_until - loop_.now())); }
    void carry_out() {
        if (state_->stuck_until > loop_.now()) return begin();
        Work work = std::move(queue_.front());
        queue_.pop_front();
        std::string problem;
        try {
            work.task(work.stop.get_token());
            if (state_->full) problem = "No space left on device";
        } catch (const std::exception& error) {
            problem = error.what();
        }
        if (!queue_.empty()) begin();
        work.then(problem); // may destroy this
    }

    EventLoop& loop_;
    std::shared_ptr<const DiskState> state_;
    bool started_ = false;
    std::deque<Work> queue_;
    Timer timer_;
};

} // namespace netio::world
