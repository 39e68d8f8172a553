// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated process: a loop or two, in virtual time and without a thread, and its user.

#include "netio/loop/event_loop.hpp"
#include "tests/support/sim_network.hpp"
#include "tests/support/sim_transport.hpp"
#include "tests/world/schedule.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace netio::world {

class Actor;

// One life of a process: a new one begins when it is restarted.
struct Process {
    Process(test::SimClock& clock, test::SimNetwork& network,
            std::vector<test::SimProfile> profiles, const ProcessPlan& plan, std::uint64_t seed);
    ~Process();

    // What a further loop has, which in a real process is a thread's.
    struct Loop {
        Loop(test::SimClock& clock, test::SimNetwork& network,
             std::vector<test::SimProfile> profiles, std::uint32_t process, std::uint64_t seed);

        test::SimProcess poller;
        EventLoop loop;
        test::SimTransport transport;
    };
    // Of all its loops.
    template <class Visit>
    void for_each_loop(Visit visit) {
        visit(poller, loop);
        if (second) visit(second->poller, second->loop);
    }

    ProcessPlan plan;
    test::SimProcess poller;
    EventLoop loop;
    test::SimTransport transport;
    Duration longest_handler{}; // that its user took
    bool has_paused = false;
    std::uint64_t listens_failed_before = 0; // in its earlier lives
    std::unique_ptr<Loop> second;            // null: there is one loop
    std::unique_ptr<Actor> actor;            // last: goes first
};

} // namespace netio::world
