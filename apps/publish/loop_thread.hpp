// SPDX-License-Identifier: Apache-2.0
#pragma once

// A further loop of `netio publish`, on a thread of its own. All that the loop has is made there,
// so that its memory is beside that of no other thread. What comes from it to the thread that owns
// this, and goes there, are values in posted tasks.

#include "apps/publish/publish_loop.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace apps {

class LoopThread {
  public:
    // Called on the owner's loop.
    struct Events {
        std::function<void(const LiveDisplay::Sums&)> on_sums; // once a second; empty: nobody asks
        std::function<void()> on_ended;                        // all its publishers, or by stop()
    };

    // Comes back when the loop's publishers listen; throws what kept them from it. The owner blocks
    // the signals that are not for the thread.
    LoopThread(PublishLoop::Options options, const PublishArguments& arguments,
               netio::EventLoop& owner, Events events);
    // Ends at once what has not ended.
    ~LoopThread();
    LoopThread(const LoopThread&) = delete;
    LoopThread& operator=(const LoopThread&) = delete;

    void start();
    void end(std::string_view why);
    void stop() noexcept;
    // Waits until the thread has ended; the rest is asked behind that.
    void join();
    bool has_failed() const { return loop_->has_failed(); }
    std::vector<PublishReport> reports() const { return loop_->reports(); }

  private:
    void run();

    const PublishLoop::Options options_;
    netio::EventLoop& owner_;
    Events events_;
    std::unique_ptr<PublishLoop> loop_; // made by the thread
    std::thread thread_;
};

} // namespace apps
