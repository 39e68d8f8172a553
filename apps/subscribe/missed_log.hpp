// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines about what was missed while there was no connection: one for each of the first fids of an
// outage, and one for all of them where there are more. The report has every fid. No I/O.

#include "apps/common/fid_spec.hpp"
#include "pubsub/core/fid_layout.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace apps::subscribe {

class MissedLog {
  public:
    static constexpr std::uint64_t shown_fids = 20;

    // Shows fids by its fields; null: as numbers.
    explicit MissedLog(const netio::pubsub::FidLayout* layout) : layout_{layout} {}

    std::optional<std::string> note(netio::pubsub::Fid fid, std::uint64_t count) {
        outage_.messages += count;
        if (++outage_.fids > shown_fids) return {};
        return fmt::format("missed {} messages of {} while not connected", count,
                           shown(netio::pubsub::FidRange{fid, fid}, layout_));
    }
    // What comes next is of another outage.
    std::optional<std::string> end() {
        const Outage all = std::exchange(outage_, {});
        if (all.fids <= shown_fids) return {};
        return fmt::format("missed {} messages of {} fids in all while not connected", all.messages,
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
