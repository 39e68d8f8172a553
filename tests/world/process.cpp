// SPDX-License-Identifier: Apache-2.0
#include "tests/world/process.hpp"

#include "tests/world/actors/actor.hpp"

#include <utility>

namespace netio::world {

Process::Process(test::SimClock& clock, test::SimNetwork& network,
                 std::vector<test::SimProfile> profiles, const ProcessPlan& its_plan,
                 std::uint64_t seed)
    : plan{its_plan}, poller{clock, seed}, loop{EventLoop::Options{}, poller},
      transport{loop, poller, network, profiles, its_plan.number} {
    if (plan.options.get("loops", 1) < 2) return;
    second = std::make_unique<Loop>(clock, network, std::move(profiles), plan.number, ~seed);
}

Process::Loop::Loop(test::SimClock& clock, test::SimNetwork& network,
                    std::vector<test::SimProfile> profiles, std::uint32_t process,
                    std::uint64_t seed)
    : poller{clock, seed}, loop{EventLoop::Options{}, poller}, transport{loop, poller, network,
                                                                         std::move(profiles),
                                                                         process} {}

Process::~Process() = default;

} // namespace netio::world
