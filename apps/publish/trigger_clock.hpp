// SPDX-License-Identifier: Apache-2.0
#pragma once

// When the next trigger is, or the next message of a stream with a rate: at equal distances or at
// random (Poisson), several at once, in trains with gaps between them. Values in, values out; the
// same seed, the same times.
//
// The rate is kept exactly in the long run. Where nobody asks in time, at most one second is made
// up for; beyond, all that follows is put off.

#include "apps/publish/draw.hpp"
#include "netio/base/time.hpp"

#include <cstdint>
#include <optional>

namespace apps {

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
