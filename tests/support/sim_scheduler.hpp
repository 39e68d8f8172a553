// SPDX-License-Identifier: Apache-2.0
#pragma once

// One scheduler over the loops of many simulated processes, without a thread: whose loop turns next
// is drawn among those that are due, and time moves when none is.

#include "tests/support/sim_world.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace netio::test {

class SimScheduler {
  public:
    SimScheduler(SimClock& clock, std::uint64_t seed) : clock_{clock}, random_{seed} {}

    void add(SimProcess& process, EventLoop& loop);
    // Legal between two steps.
    void remove(SimProcess& process);
    // As SIGSTOP and SIGCONT: the loop does not turn, and the time of all goes on.
    void stop(SimProcess& process);
    void go_on(SimProcess& process);

    // One turn, or one event, or time moves on to `until` at most.
    void step(TimePoint until);
    // Turns since time moved: many of them are work without end.
    std::size_t turns_at_once() const noexcept { return turns_at_once_; }
    std::uint64_t turns() const noexcept { return turns_; }

  private:
    struct Entry {
        SimProcess* process = nullptr;
        EventLoop* loop = nullptr;
        bool stopped = false;
    };
    Entry* find(const SimProcess& process);

    SimClock& clock_;
    std::mt19937_64 random_;
    std::vector<Entry> entries_;
    std::size_t turns_at_once_ = 0;
    std::uint64_t turns_ = 0;
};

} // namespace netio::test
