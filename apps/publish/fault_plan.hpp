// SPDX-License-Identifier: Apache-2.0
#pragma once

// Faults on purpose, so that who checks messages can be checked: which message of a fid is left
// out, comes twice, is damaged, late or cut off, and how many of each a checker that has seen all
// messages must find. Values in, values out; the same seed, the same faults.
//
// The first message of a fid is always sound, as what is missing before it nobody would see.

#include "apps/common/fault_counts.hpp"
#include "apps/publish/draw.hpp"

#include <cstdint>
#include <optional>

namespace apps {

// Which part of all messages, each from 0 to 1, and so all together.
struct FaultConfig {
    double missing = 0;
    double duplicated = 0;
    double corrupted = 0;
    double late = 0; // it comes behind the next one
    double truncated = 0;

    bool any() const noexcept {
        return missing > 0 || duplicated > 0 || corrupted > 0 || late > 0 || truncated > 0;
    }
};

// Of one fid.
class FaultPlan {
  public:
    FaultPlan(const FaultConfig& config, std::uint64_t seed);

    struct Step {
        std::uint64_t sequence = 0;
        enum class Damage : std::uint8_t { none, corrupted, truncated } damage = Damage::none;
        std::uint64_t place = 0; // of the damage, a number of any size
    };
    // What to publish next; the same until accept().
    const Step& step() const noexcept { return step_; }
    // It was published.
    void accept();
    // Of what was accepted: what a checker finds. One that is late and has not come is missing.
    FaultCounts counts() const;

  private:
    enum class Fault : std::uint8_t { none, missing, duplicated, corrupted, late, truncated };
    void plan();
    Fault drawn();

    FaultConfig config_;
    Draw draw_;
    std::uint64_t fresh_ = 0; // the first number that no step had
    Step step_;
    Fault fault_ = Fault::none;          // of the step
    std::optional<std::uint64_t> after_; // comes behind the step
    bool is_behind_ = false;             // the step is what came behind another
    FaultCounts counts_;
};

} // namespace apps
