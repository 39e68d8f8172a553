// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/pattern.hpp"
#include "netio/base/time.hpp"

#include <cstdint>
#include <optional>

namespace apps {

// Pseudo-random numbers from a seed, the same on all machines. The state has 8 bytes, because there
// may be one for each of a million fids (SplitMix64).

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
    // Returns a number in (0, 1].
    double unit() noexcept { return (static_cast<double>(next() >> 11) + 1.0) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

// Faults on purpose, to test a checker: which message of a fid is missing, duplicated, damaged,
// late or truncated, and how many of each a checker that receives all messages must find. No I/O;
// the same seed gives the same faults.
//
// The first message of a fid is always correct, because a checker cannot detect messages missing
// before it.

// Fractions of all messages; each fraction and their sum are from 0 to 1.
struct FaultConfig {
    double missing = 0;
    double duplicated = 0;
    double corrupted = 0;
    double late = 0; // it is sent after the next one
    double truncated = 0;

    bool any() const noexcept {
        return missing > 0 || duplicated > 0 || corrupted > 0 || late > 0 || truncated > 0;
    }
};

// The faults of one fid.
class FaultPlan {
  public:
    FaultPlan(const FaultConfig& config, std::uint64_t seed);

    struct Step {
        std::uint64_t sequence = 0;
        enum class Damage : std::uint8_t { none, corrupted, truncated } damage = Damage::none;
        std::uint64_t place = 0; // of the damage; any number
    };
    // What to publish next; unchanged until accept().
    const Step& step() const noexcept { return step_; }
    // Call it when the step was published.
    void accept();
    // The faults that a checker of all accepted messages finds. A late message that was not sent
    // yet counts as missing.
    FaultCounts counts() const;

  private:
    enum class Fault : std::uint8_t { none, missing, duplicated, corrupted, late, truncated };
    void plan();
    Fault drawn();

    FaultConfig config_;
    Draw draw_;
    std::uint64_t fresh_ = 0; // the first number without a step
    Step step_;
    Fault fault_ = Fault::none;          // fault of the step
    std::optional<std::uint64_t> after_; // the number that follows the step
    bool is_behind_ = false;             // the step follows a late one
    FaultCounts counts_;
};

// Times of the triggers, or of the messages of a stream with a rate: at equal or random (Poisson)
// intervals, in bursts, in trains with gaps between them. No I/O; the same seed gives the same
// times.
//
// The long-term rate is exact. If the caller is late, at most one second is caught up; a longer
// delay postpones everything that follows.

struct RateConfig {
    double per_second = 0;   // above zero; average, within trains
    std::uint64_t burst = 1; // number per occasion, at accordingly longer intervals
    bool poisson = false;    // the occasions are independent of each other
    // Length of a train, and of the gap without messages after it; zero: no trains.
    netio::Duration train{0};
    netio::Duration gap{0};
};

class TriggerClock {
  public:
    TriggerClock(const RateConfig& rate, std::uint64_t seed, netio::TimePoint start);

    // Returns whether one is due. If so, it is consumed.
    bool take(netio::TimePoint now);
    // When the next one is due; max(): later than the clock can represent.
    netio::TimePoint next() const noexcept { return next_; }
    std::uint64_t taken() const noexcept { return taken_; }
    // The total delay of the schedule.
    netio::Duration put_off() const noexcept { return put_off_; }

  private:
    void find_next();

    RateConfig rate_;
    netio::TimePoint start_;
    Draw draw_;
    std::uint64_t taken_ = 0;
    double live_seconds_ = 0; // Poisson: time of the next occasion, without gaps
    netio::Duration put_off_{0};
    netio::TimePoint next_;
};

} // namespace apps
