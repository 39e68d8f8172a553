// SPDX-License-Identifier: Apache-2.0
#pragma once

// Detects a peer that occupies a connection and makes no progress. Belongs to the loop's thread.

#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace apps {

class IdleWatch {
  public:
    // `moved` is a sum that grows with any progress. Calls `on_idle` once when the sum has not
    // grown for `limit` (0: never); `on_idle` may destroy this object.
    IdleWatch(netio::EventLoop& loop, std::chrono::milliseconds limit,
              std::function<std::uint64_t()> moved, std::function<void()> on_idle)
        : limit_{limit}, moved_{std::move(moved)}, on_idle_{std::move(on_idle)}, timer_{loop,
                                                                                        [this] {
                                                                                            look();
                                                                                        }} {}

    void start() {
        seen_ = moved_();
        if (limit_.count() > 0) timer_.start(limit_);
    }
    void cancel() noexcept { timer_.cancel(); }

  private:
    void look() {
        if (moved_() != seen_) return start();
        on_idle_();
    }

    std::chrono::milliseconds limit_;
    std::function<std::uint64_t()> moved_;
    std::function<void()> on_idle_;
    std::uint64_t seen_ = 0;
    netio::Timer timer_;
};

} // namespace apps
