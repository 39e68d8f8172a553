// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of several seeds to run: the one whose world has what has met least in the worlds before. A
// seed's own world stays what it is, so what fails is run again by its seed alone.

#include "tests/world/schedule.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace netio::world {

class Steering {
  public:
    // The rarer what meets in this world was until now, the higher.
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
    // What is to happen to which kind of process, and at which moment.
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
