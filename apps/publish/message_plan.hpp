// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/pattern.hpp"
#include "netio/base/time.hpp"

#include <cstdint>
#include <optional>

namespace apps {

// Numbers that look random and follow from a seed, the same everywhere. Eight bytes, as there may
// be one for each of a million fids (SplitMix64).

class Draw {
  public:
    explicit Draw(std::uint64_t seed) noexcept : state_{seed} {}

    std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t value = state_;
        value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
        value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
        return value ^ (value >> 31);
    }
    // In (0, 1].
    double unit() noexcept { return (static_cast<double>(next() >> 11) + 1.0) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

// Faults on purpose, so that who checks messages can be checked: which message of a fid is left
// out, comes twice, is damaged, late or cut off, and how many of each a checker that has seen all
// messages must find. Values in, values out; the same seed, the same faults.
//
// The first message of a fid is always sound, as what is missing before it nobody would see.

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

// When the next trigger is, or the next message of a stream with a rate: at equal distances or at
// random (Poisson), several at once, in trains with gaps between them. Values in, values out; the
// same seed, the same times.
//
// The rate is kept exactly in the long run. Where nobody asks in time, at most one second is made
// up for; beyond, all that follows is put off.

struct RateConfig {
    double per_second = 0;   // above zero; on average, and within trains
    std::uint64_t burst = 1; // so many at once, and as many times fewer occasions
    bool poisson = false;    // the occasions are independent of each other
    // So long there are some, and then, if not zero, for the length of the gap there are none.
    netio::Duration train{0};
    netio::Duration gap{0};
};

class TriggerClock {
  public:
    TriggerClock(const RateConfig& rate, std::uint64_t seed, netio::TimePoint start);

    // Whether one is due; it is taken, and the next one comes.
    bool take(netio::TimePoint now);
    // When the next one is due; max(): not within a generation.
    netio::TimePoint next() const noexcept { return next_; }
    std::uint64_t taken() const noexcept { return taken_; }
    // By how much what follows comes later than it was meant to.
    netio::Duration put_off() const noexcept { return put_off_; }

  private:
    void find_next();

    RateConfig rate_;
    netio::TimePoint start_;
    Draw draw_;
    std::uint64_t taken_ = 0;
    double live_seconds_ = 0; // of the next occasion, without gaps; Poisson
    netio::Duration put_off_{0};
    netio::TimePoint next_;
};

} // namespace apps
