// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines about what others make happen, as often as they like: so many are written each interval,
// and then one that counts those that were not. Belongs to the loop's thread.

#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace apps {

class LimitedLog {
  public:
    using Write = std::function<void(const std::string& line)>;
    static constexpr std::chrono::seconds interval{10};
    static constexpr std::uint64_t lines_per_interval = 100;

    LimitedLog(netio::EventLoop& loop, Write write);
    // Counts what has not been counted.
    ~LimitedLog();
    LimitedLog(const LimitedLog&) = delete;
    LimitedLog& operator=(const LimitedLog&) = delete;

    void note(const std::string& line);

  private:
    void tell();

    Write write_;
    std::uint64_t told_ = 0; // in this interval
    std::uint64_t untold_ = 0;
    netio::Timer timer_; // armed: an interval has begun
};

} // namespace apps
