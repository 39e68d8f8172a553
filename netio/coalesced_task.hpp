// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/context.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace netio::inline v0_3 {

// A task for the thread of a context that any thread may request. A pending request is not
// repeated, so that few tasks wait however often it is requested. Must be destroyed on that thread,
// or when no request is pending. The context must outlive it.
class CoalescedTask {
  public:
    CoalescedTask(const Context& context, std::function<void()> run)
        : context_{context}, task_{std::make_shared<Task>(std::move(run))} {}
    ~CoalescedTask() { task_->run = nullptr; }
    CoalescedTask(const CoalescedTask&) = delete;
    CoalescedTask& operator=(const CoalescedTask&) = delete;

    // Any thread.
    void request() {
        if (task_->requested.load() || task_->requested.exchange(true)) return;
        context_.post_always([task = task_] {
            task->requested.store(false); // a request from here on needs another run
            if (task->run) task->run();
        });
    }

  private:
    struct Task {
        explicit Task(std::function<void()> its_run) : run{std::move(its_run)} {}
        std::function<void()> run;
        std::atomic<bool> requested{false};
    };

    const Context& context_;
    std::shared_ptr<Task> task_;
};

} // namespace netio::inline v0_3
