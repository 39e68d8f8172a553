// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the loops of many simulated processes without a thread: it draws the next loop among those
// that are due, and advances time when none is due.

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
    // May be called between two steps.
    void remove(SimProcess& process);
    // Like SIGSTOP and SIGCONT: the loop does not turn while time advances for all.
    void stop(SimProcess& process);
    void go_on(SimProcess& process);

    // Runs one turn or one event, or advances time to at most `until`.
    void step(TimePoint until);
    // Number of turns since time last advanced; a high number shows an endless loop.
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
