// SPDX-License-Identifier: Apache-2.0
#pragma once

// Virtual time for an event loop: nothing sleeps, and time moves only when the loop has nothing to
// do. What is to happen later is scheduled; what happens at the same time happens in the order of
// scheduling, so a run is the same every time.
//
// A loop that would wait for ever, with nothing scheduled that could wake it, has dead-locked:
// wait() throws std::logic_error, which fails the test at once instead of hanging it.

#include "netio/loop/event_loop.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace netio::test {

class SimWorld final : public Poller {
  public:
    TimePoint now() override { return now_; }
    void add(EventSource&) override {}
    void remove(EventSource& source) override { std::erase(ready_, &source); }
    void wait(TimePoint deadline, std::vector<EventSource*>& fired) override;
    void wake() noexcept override { woken_.store(true); }
    int pollable_fd(TimePoint) override { return -1; }

    void at(TimePoint when, std::function<void()> event) {
        events_.emplace(std::pair{std::max(when, now_), order_++}, std::move(event));
    }
    // The source has something to drain.
    void ready(EventSource& source);

  private:
    TimePoint now_{std::chrono::hours{1}};
    std::uint64_t order_ = 0;
    std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> events_;
    std::vector<EventSource*> ready_;
    std::atomic<bool> woken_{false};
};

} // namespace netio::test
