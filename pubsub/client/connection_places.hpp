// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the publishers that are to be asked may have a connection: so many at a time. Those that
// were passed over are remembered, and have the places that become free. No I/O.

#include "pubsub/core/assignment.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace netio::pubsub::inline v0_2 {

class ConnectionPlaces {
  public:
    explicit ConnectionPlaces(std::size_t limit) noexcept : limit_{limit} {}

    bool has_room() const noexcept { return held_.size() < limit_; }
    // True: it has one, now or already. Else it is passed over.
    bool take(SourceId id) {
        if (held_.count(id) == 0 && !has_room()) {
            passed_over_.insert(id);
            return false;
        }
        held_.insert(id);
        passed_over_.erase(id);
        return true;
    }
    void give_back(SourceId id) { held_.erase(id); }
    // It is not to be asked any more.
    void forget(SourceId id) {
        give_back(id);
        passed_over_.erase(id);
        if (passed_over_.empty()) told_ = false;
    }
    bool is_passed_over(SourceId id) const { return passed_over_.count(id) > 0; }
    // One that was passed over, of which nobody was told: once until none is.
    std::optional<SourceId> untold() {
        if (passed_over_.empty() || std::exchange(told_, true)) return {};
        return *passed_over_.begin();
    }
    // One that was passed over and is to be asked now, and none of those any more; in turns.
    std::optional<SourceId> next() {
        if (passed_over_.empty() || !has_room()) return {};
        auto next = passed_over_.upper_bound(last_);
        if (next == passed_over_.end()) next = passed_over_.begin();
        last_ = *next;
        passed_over_.erase(next);
        if (passed_over_.empty()) told_ = false;
        return last_;
    }

  private:
    std::size_t limit_;
    std::set<SourceId> held_;
    std::set<SourceId> passed_over_;
    SourceId last_{}; // that was given a place behind others
    bool told_ = false;
};

} // namespace netio::pubsub::inline v0_2
