// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps one announcement on a board: written again with a counter that has moved, tried again where
// it failed, withdrawn at the end. No clock; no I/O but the board's.

#include "pubsub/discovery/board.hpp"
#include "pubsub/discovery/complaints.hpp"
#include "pubsub/discovery/name_claim.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class BusWriter {
  public:
    BusWriter(Announcement announcement, std::chrono::milliseconds lease)
        : announcement_{std::move(announcement)}, claim_{announcement_.instance, lease} {
        announcement_.lease = lease;
    }

    // What it says from the next refresh on; the name and the instance stay.
    void say(Announcement announcement);
    // None of these throws: what fails is a trouble.
    void refresh(Board& board, TimePoint now);
    void withdraw(Board& board);
    std::vector<std::string> take_troubles();
    // What it says stands there.
    bool is_written() const noexcept { return written_; }

  private:
    std::optional<Announcement> what_stands(Board& board) const;
    void complain(const std::string& trouble, TimePoint now);

    Announcement announcement_;
    NameClaim claim_;
    bool written_ = false; // as it is
    Complaints complaints_;
    std::vector<std::string> troubles_; // limited by complaints_
};

} // namespace netio::pubsub::inline v0_2
