// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes of what is read on a board what a handler is told: the last word about each publisher, and
// what is worth telling of troubles. No I/O, no clock.

#include "pubsub/discovery/board.hpp"
#include "pubsub/discovery/complaints.hpp"
#include "pubsub/discovery/lease_tracker.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// What is to be told: bounded by the number of publishers, and by Complaints::limit.
struct BusNews {
    std::map<std::string, std::optional<Announcement>> publishers; // nothing: it is gone
    std::vector<std::string> troubles;
    bool caught_up = false; // it has been read for the first time

    bool empty() const noexcept { return publishers.empty() && troubles.empty() && !caught_up; }
    // What came later.
    void add(BusNews&& later);
};

class BusReader final : private Board::Visitor {
  public:
    BusReader(Duration lease, std::size_t publisher_limit)
        : publisher_limit_{publisher_limit}, tracker_{lease, publisher_limit} {}

    // Looks at the board. It does not throw: what fails is a trouble.
    void look(Board& board, TimePoint now);
    BusNews take_news();
    TimePoint next_expiry() const { return tracker_.next_expiry(); }

  private:
    void on_text(const std::string& name, const std::string& text) override;
    bool on_kept(const std::string& name) override;
    void on_removed(const std::string& name) override;
    void on_unreadable(const std::string& what) override;
    void complain(const std::string& trouble);

    std::size_t publisher_limit_;
    LeaseTracker tracker_;
    Complaints complaints_;
    BusNews news_;
    TimePoint now_; // of this look
    bool was_read_ = false;
};

} // namespace netio::pubsub::inline v0_2
