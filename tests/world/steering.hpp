// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses which of several seeds to run: the one whose world has the combinations that were rarest
// so far. A seed always gives the same world, so a failure is reproduced from its seed alone.

#include "tests/world/schedule.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace netio::world {

class Steering {
  public:
    // Higher for a world with rarer combinations.
    double worth(const Schedule& schedule) const {
        double sum = 0;
        for (const std::string& meeting : meetings_of(schedule)) {
            const auto found = met_.find(meeting);
            sum += 1.0 / static_cast<double>(1 + (found == met_.end() ? 0 : found->second));
        }
        return sum;
    }
    void note(const Schedule& schedule) {
        for (const std::string& meeting : meetings_of(schedule))
            ++met_[meeting];
    }

  private:
    // Which fault happens to which kind of process, and at which moment.
    static std::set<std::string> meetings_of(const Schedule& schedule) {
        std::map<std::uint32_t, std::string> kinds;
        for (const ProcessPlan& plan : schedule.processes)
            kinds[plan.number] = plan.kind + std::to_string(plan.options.get("mode")) + ' ' +
                                 std::to_string(plan.options.get("policy"));
        std::set<std::string> meetings;
        for (const Step& step : schedule.steps) {
            std::string what = step.what;
            for (const char* const part : {"event", "deed", "kind", "call"})
                if (step.with.has(part)) what += ' ' + std::to_string(step.with.get(part));
            meetings.insert(kinds[step.process] + ' ' + what);
        }
        return meetings;
    }

    std::map<std::string, std::uint64_t> met_;
};

} // namespace netio::world
