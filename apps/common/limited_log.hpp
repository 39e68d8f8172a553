// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines about what others make happen, as often as they like: so many are written each interval,
// and at its end the last of those that were not, with their number. Nothing is left untold.
// Belongs to the loop's thread.

#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace apps {

class LimitedLog {
  public:
    using Write = std::function<void(const std::string& line)>;
    static constexpr std::chrono::seconds interval{10};
    static constexpr std::uint64_t lines_per_interval = 100;

    struct Limit {
        std::uint64_t lines = lines_per_interval;
        netio::Duration interval = LimitedLog::interval;
    };
    LimitedLog(netio::EventLoop& loop, Write write, std::uint64_t limit = lines_per_interval)
        : LimitedLog{loop, std::move(write), Limit{.lines = limit, .interval = interval}} {}
    LimitedLog(netio::EventLoop& loop, Write write, const Limit& limit);
    // Tells what has not been told.
    ~LimitedLog();
    LimitedLog(const LimitedLog&) = delete;
    LimitedLog& operator=(const LimitedLog&) = delete;

    void note(std::string line);

  private:
    void tell();

    Write write_;
    Limit limit_;
    std::uint64_t told_ = 0; // in this interval
    std::uint64_t untold_ = 0;
    std::string last_;   // of those
    netio::Timer timer_; // armed: an interval has begun
};

} // namespace apps
