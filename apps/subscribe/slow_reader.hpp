// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subscriber that is slow on purpose: how long it holds each message up. Values in, values out.

#include "netio/base/time.hpp"

#include <string_view>

namespace apps::subscribe {

struct Slowness {
    netio::Duration think{0}; // over each message
    // Reads nothing for so long, once in so long; zero: never.
    netio::Duration pause{0};
    netio::Duration every{0};
};

// "500ms@10s" into pause and every. False: it is none, or the pause is not the shorter.
bool parse_pause(std::string_view text, Slowness& slowness);
inline constexpr std::string_view pause_spelling =
    "TIME@TIME, how long and once in how long: 500ms@10s; the first is the shorter";

class SlowReader {
  public:
    SlowReader(const Slowness& slowness, netio::TimePoint start);

    bool is_slow() const noexcept {
        return slowness_.think.count() > 0 || slowness_.pause.count() > 0;
    }
    // How long the message that is there at `now` is to be held.
    netio::Duration hold(netio::TimePoint now);

  private:
    Slowness slowness_;
    netio::TimePoint next_pause_;
};

} // namespace apps::subscribe
