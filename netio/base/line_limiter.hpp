// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the log lines of events whose frequency peers control. No I/O, no clock.

#include "netio/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace netio::inline v0_3 {

class LineLimiter {
  public:
    static constexpr std::uint64_t limit = 10; // lines per interval
    static constexpr std::chrono::seconds interval{10};

    // Calls write(text) with the line, unless the interval's limit is reached. The first line after
    // suppressed ones includes their number.
    template <typename Write>
    void pass(const std::string& line, TimePoint now, Write write) {
        if (count_ == 0 || now - since_ >= interval) {
            if (count_ > limit)
                write(std::to_string(count_ - limit) + " lines like the next one were suppressed");
            since_ = now;
            count_ = 0;
        }
        if (count_++ < limit) write(line);
    }

  private:
    TimePoint since_{};
    std::uint64_t count_ = 0;
};

} // namespace netio::inline v0_3
