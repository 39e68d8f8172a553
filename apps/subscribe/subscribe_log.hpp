// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/fid_text.hpp"
#include "apps/common/logging.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_layout.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace apps::subscribe {

// Log lines about publishers that announce the same fids: one line per pair of publishers and
// change. The rate is limited, because anyone who may write to a bus can announce anything. Belongs
// to the loop's thread.

inline std::string line_of(const netio::pubsub::Subscriptions::Contest& contest) {
    const std::string more =
        contest.fids == 1 ? "" : fmt::format(" and {} more fids", contest.fids - 1);
    return fmt::format("{} and {} both announce {}{}; using {}", contest.owner, contest.other,
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

// Log lines about messages lost while not connected: one line for each of the first fids of an
// outage, and one for all fids if there are more. The report has every fid. No I/O.

class MissedLog {
  public:
    static constexpr std::uint64_t shown_fids = 20;

    // Shows fids by the layout's fields; null: as numbers.
    explicit MissedLog(const netio::pubsub::FidLayout* layout) : layout_{layout} {}

    std::optional<std::string> note(netio::pubsub::Fid fid, std::uint64_t count) {
        outage_.messages += count;
        if (++outage_.fids > shown_fids) return {};
        return fmt::format("lost {} messages of {} while not connected", count,
                           shown(netio::pubsub::FidRange{fid, fid}, layout_));
    }
    // Ends an outage: later reports belong to another one.
    std::optional<std::string> end() {
        const Outage all = std::exchange(outage_, {});
        if (all.fids <= shown_fids) return {};
        return fmt::format("lost {} messages of {} fids in total while not connected", all.messages,
                           all.fids);
    }

  private:
    struct Outage {
        std::uint64_t fids = 0;
        std::uint64_t messages = 0;
    };

    const netio::pubsub::FidLayout* layout_;
    Outage outage_;
};

} // namespace apps::subscribe
