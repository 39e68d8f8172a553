// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines about publishers that announce the same fids: one for each two of them and change, and of
// those so many in an interval, as whoever may write a bus can announce what he likes. Belongs to
// the loop's thread.

#include "apps/common/limited_log.hpp"
#include "pubsub/client/subscriptions.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace apps::subscribe {

inline std::string line_of(const netio::pubsub::Subscriptions::Contest& contest) {
    const std::string more =
        contest.fids == 1 ? "" : fmt::format(" and {} more fids", contest.fids - 1);
    return fmt::format("{} and {} both announce {}{}; taken from {}", contest.owner, contest.other,
                       to_string(contest.first.first), more, contest.owner);
}

class ContestLog {
  public:
    ContestLog(netio::EventLoop& loop, LimitedLog::Write write) : lines_{loop, std::move(write)} {}
    void note(const netio::pubsub::Subscriptions::Contest& contest) {
        lines_.note(line_of(contest));
    }

  private:
    LimitedLog lines_;
};

} // namespace apps::subscribe
