// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recorder on a thread of its own, so that a slow disk does not stop the loop. The loop's thread
// queues messages up to `queue_limit_bytes`; while the queue is full it receives nothing. Belongs
// to the loop's thread.

#include "apps/common/background_writer.hpp"
#include "apps/subscribe/recorder.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace apps::subscribe {

class BackgroundRecorder {
  public:
    static constexpr std::size_t queue_limit_bytes = std::size_t{64} << 20;

    struct Events { // in a turn of the loop
        std::function<void()> on_writable;
        std::function<void(const std::string& why)> on_failure;
    };
    BackgroundRecorder(netio::EventLoop& loop, std::unique_ptr<Recorder> recorder, Events events);
    BackgroundRecorder(const BackgroundRecorder&) = delete;
    BackgroundRecorder& operator=(const BackgroundRecorder&) = delete;

    void write(netio::pubsub::Fid fid, std::span<const std::byte> message);
    bool is_full() const { return writer_.is_full(); }

    // After the loop: waits until everything is on the disk. These fids are whole; without a set no
    // file gets its final name. Throws what the recorder throws, and std::runtime_error if a signal
    // ends the wait.
    void finish(std::optional<std::set<netio::pubsub::Fid>> whole);

  private:
    std::shared_ptr<std::unique_ptr<Recorder>> recorder_; // the thread's, which may outlive this
    BackgroundWriter writer_;
    netio::DescriptorWatch watch_;
};

} // namespace apps::subscribe
