// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated process: one or two loops in virtual time without a thread, and their user.

#include "netio/loop/event_loop.hpp"
#include "tests/support/sim_network.hpp"
#include "tests/support/sim_transport.hpp"
#include "tests/world/schedule.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace netio::world {

class Actor;

// One life of a process: a restart begins a new one.
struct Process {
    Process(test::SimClock& clock, test::SimNetwork& network,
            std::vector<test::SimProfile> profiles, const ProcessPlan& plan, std::uint64_t seed);
    ~Process();

    // The state of a second loop, which would run in its own thread in a real process.
    struct Loop {
        Loop(test::SimClock& clock, test::SimNetwork& network,
             std::vector<test::SimProfile> profiles, std::uint32_t process, std::uint64_t seed);

        test::SimProcess poller;
        EventLoop loop;
        test::SimTransport transport;
    };
    // Visits all its loops.
    template <class Visit>
    void for_each_loop(Visit visit) {
        visit(poller, loop);
        if (second) visit(second->poller, second->loop);
    }

    ProcessPlan plan;
    test::SimProcess poller;
    EventLoop loop;
    test::SimTransport transport;
    Duration longest_handler{}; // of its user
    bool has_paused = false;
    std::uint64_t listens_failed_before = 0; // in its earlier lives
    std::unique_ptr<Loop> second;            // null: only one loop
    std::unique_ptr<Actor> actor;            // last member: destroyed first
};

} // namespace netio::world
