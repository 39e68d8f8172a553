// SPDX-License-Identifier: Apache-2.0
#pragma once

// One process and a second process with a thousand peers, on simulated tcp and on simulated verbs.
// The duration of the first process's turns is measured in calls; each call takes some simulated
// time.

#include "tests/support/sim_node.hpp"
#include "tests/support/sim_scheduler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace netio::test {

enum class CrowdedProvider : std::uint8_t { sim_tcp, sim_verbs };

class Crowd : public testing::TestWithParam<CrowdedProvider> {
  protected:
    static constexpr std::size_t count = 1000;
    static constexpr SimTransport::Costs costs{.post = std::chrono::microseconds{5},
                                               .connection = std::chrono::microseconds{50}};
    // One operation of each kind for each peer would take more than ten times this duration.
    static constexpr Duration longest_turn = std::chrono::milliseconds{6};

    Crowd() {
        scheduler_.add(near_.process, near_.loop);
        scheduler_.add(far_.process, far_.loop);
        near_.transport.set_costs(costs);
    }
    // Waits at most ten minutes of simulated time.
    bool run_until(const std::function<bool()>& done) {
        near_.process.wake();
        far_.process.wake();
        for (const TimePoint end = clock_.now() + std::chrono::minutes{10}; !done();) {
            if (clock_.now() >= end) return false;
            scheduler_.step(end);
        }
        return true;
    }
    // Kills the thousand peers. With `silently`, their connections are not reset either.
    void kill_all(bool silently) { network_.kill(far_number, silently); }

  private:
    static constexpr std::uint32_t far_number = 2;
    SimClock clock_;
    SimNetwork network_{clock_, 5};
    SimScheduler scheduler_{clock_, 5};
    SimProfile profile_ = GetParam() == CrowdedProvider::sim_tcp ? tcp_profile() : verbs_profile();

  protected:
    SimNode near_{clock_, network_, profile_, 1};
    SimNode far_{clock_, network_, profile_, far_number};
};

inline auto crowded_providers() {
    return testing::Values(CrowdedProvider::sim_tcp, CrowdedProvider::sim_verbs);
}
inline std::string crowded_provider_name(const testing::TestParamInfo<CrowdedProvider>& info) {
    return info.param == CrowdedProvider::sim_tcp ? "sim_tcp" : "sim_verbs";
}

} // namespace netio::test
