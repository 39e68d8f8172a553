// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tasks on their way from any thread to the loop's. It has a limit: who posts faster than the loop
// runs is told so instead of filling the memory.

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace netio::inline v0_2 {

class TaskQueue {
  public:
    enum class Put : unsigned char {
        first, // nobody has asked for the loop's attention yet: wake it
        ok,
        full,
    };

    explicit TaskQueue(std::size_t limit) : limit_{limit} {}

    // Any thread.
    Put put(std::function<void()> task);

    // The loop's thread only. Whether run() would find anything.
    bool waiting() const noexcept { return posted_.load() || next_ < running_.size(); }
    // Runs what was put before, in order, until `time_is_up` says so behind a task; the rest waits
    // for the next call. Returns whether it ran any.
    bool run(const std::function<bool()>& time_is_up);

  private:
    const std::size_t limit_;
    std::atomic<bool> posted_{false};
    std::mutex mutex_;
    std::vector<std::function<void()>> tasks_;
    std::atomic<std::size_t> to_run_{0}; // of those that run() has taken
    // The loop's own.
    std::vector<std::function<void()>> running_;
    std::size_t next_ = 0;
};

} // namespace netio::inline v0_2
