// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/fault_plan.hpp"

#include <utility>

namespace apps {

FaultPlan::FaultPlan(const FaultConfig& config, std::uint64_t seed) : config_{config}, draw_{seed} {
    plan();
}

void FaultPlan::accept() {
    switch (fault_) {
    case Fault::none:
        break;
    case Fault::missing:
        ++counts_.missing;
        break;
    case Fault::duplicated:
        if (is_behind_) ++counts_.duplicated;
        break;
    case Fault::corrupted:
        ++counts_.corrupted;
        break;
    case Fault::late:
        if (is_behind_) ++counts_.late;
        break;
    case Fault::truncated:
        ++counts_.truncated;
        break;
    }
    if (after_) {
        step_ = {.sequence = *std::exchange(after_, std::nullopt)};
        is_behind_ = true;
        return;
    }
    plan();
}

FaultCounts FaultPlan::counts() const {
    FaultCounts counts = counts_;
    if (fault_ == Fault::late && is_behind_) ++counts.missing;
    return counts;
}

// Decides on the next number, and on the one behind it where that is needed.
void FaultPlan::plan() {
    is_behind_ = false;
    fault_ = fresh_ == 0 ? Fault::none : drawn();
    step_ = {.sequence = fresh_++};
    switch (fault_) {
    case Fault::none:
        break;
    case Fault::missing:
        step_.sequence = fresh_++;
        break;
    case Fault::duplicated:
        after_ = step_.sequence;
        break;
    case Fault::late:
        after_ = std::exchange(step_.sequence, fresh_++);
        break;
    case Fault::corrupted:
        step_.damage = Step::Damage::corrupted;
        step_.place = draw_.next();
        break;
    case Fault::truncated:
        step_.damage = Step::Damage::truncated;
        step_.place = draw_.next();
        break;
    }
}

FaultPlan::Fault FaultPlan::drawn() {
    double left = draw_.unit();
    for (const auto& [part, fault] : {std::pair{config_.missing, Fault::missing},
                                      {config_.duplicated, Fault::duplicated},
                                      {config_.corrupted, Fault::corrupted},
                                      {config_.late, Fault::late},
                                      {config_.truncated, Fault::truncated}}) {
        if (left <= part && part > 0) return fault;
        left -= part;
    }
    return Fault::none;
}

} // namespace apps
