// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/task_queue.hpp"

#include <utility>

namespace netio::inline v0_2 {

TaskQueue::Put TaskQueue::put(std::function<void()> task) {
    {
        const std::lock_guard lock{mutex_};
        if (tasks_.size() + to_run_.load() >= limit_) return Put::full;
        tasks_.push_back(std::move(task));
    }
    // Only the first of a batch needs the loop woken: run() clears the flag before it looks.
    return posted_.exchange(true) ? Put::ok : Put::first;
}

bool TaskQueue::run(const std::function<bool()>& time_is_up) {
    if (next_ == running_.size()) {
        if (!posted_.exchange(false)) return false;
        running_.clear();
        next_ = 0;
        const std::lock_guard lock{mutex_};
        running_.swap(tasks_);
        to_run_ = running_.size();
    }
    const std::size_t begin = next_;
    while (next_ < running_.size()) {
        // Taken out, so that what it holds is freed behind it and not with the last of the batch.
        const std::function<void()> task = std::move(running_[next_++]);
        to_run_ = running_.size() - next_; // before it may post another one
        task();
        if (time_is_up()) break;
    }
    return next_ > begin;
}

} // namespace netio::inline v0_2
