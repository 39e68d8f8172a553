// SPDX-License-Identifier: Apache-2.0
#pragma once

// One of several simulated processes: its loop and its transport on the shared network.

#include "netio/loop/event_loop.hpp"
#include "tests/support/sim_transport.hpp"
#include "tests/support/sim_world.hpp"

#include <cstdint>

namespace netio::test {

struct SimNode {
    SimNode(SimClock& clock, SimNetwork& network, const SimProfile& profile, std::uint32_t number)
        : process{clock, number}, loop{{}, process}, transport{loop,
                                                               process,
                                                               network,
                                                               {profile},
                                                               number} {}

    SimProcess process;
    EventLoop loop;
    SimTransport transport;
};

} // namespace netio::test
