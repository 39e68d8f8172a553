// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is worth telling: each trouble when it is new, and again when it has been quiet about it for
// long; so many a minute and no more, whatever lies on a bus. No I/O, no clock.

#include "netio/base/time.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace netio::pubsub::inline v0_2 {

class Complaints {
  public:
    static constexpr std::chrono::minutes interval{1};
    static constexpr std::size_t limit = 32; // different ones in an interval

    // What to tell; nothing: it has been told.
    std::optional<std::string> about(const std::string& trouble, TimePoint now) {
        std::erase_if(told_, [&](const auto& each) { return now - each.second >= interval; });
        if (told_.contains(trouble) || told_.size() > limit) return {};
        const bool last = told_.size() == limit;
        told_.emplace(trouble, now);
        return last ? "the bus has more troubles than are told" : trouble;
    }

  private:
    std::map<std::string, TimePoint> told_;
};

} // namespace netio::pubsub::inline v0_2
