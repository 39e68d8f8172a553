// SPDX-License-Identifier: Apache-2.0
#pragma once

// The disk's thread (apps/copy/disk.hpp).
//
//     DiskThread disk{loop};
//     disk.start();
//     disk.run([&](std::stop_token) { file.write(bytes); },
//              [&](const std::string& problem) { if (problem.empty()) ... });
//
// Owned by the object whose memory the tasks use. Belongs to the loop's thread.

#include "apps/common/descriptor.hpp"
#include "apps/copy/disk.hpp"
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
