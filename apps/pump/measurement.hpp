// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measurement: the time and the processor time of a part of this process's life.

#include "netio/base/time.hpp"

namespace apps::pump {

// Of this process so far, user and system.
double processor_seconds();

class Measurement {
  public:
    void begin(netio::TimePoint now);
    // Until now. The last one counts.
    void end(netio::TimePoint now);
    bool is_running() const noexcept { return begin_ != netio::TimePoint{} && end_ == begin_; }

    double seconds() const;
    double processor_s() const noexcept { return processor_s_; }
    // Of a core.
    double processor_share() const { return seconds() > 0 ? processor_s_ / seconds() : 0; }

  private:
    netio::TimePoint begin_;
    netio::TimePoint end_;
    double processor_begin_ = 0;
    double processor_s_ = 0;
};

} // namespace apps::pump
