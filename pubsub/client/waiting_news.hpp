// SPDX-License-Identifier: Apache-2.0
#pragma once

// The last word about each publisher on a bus that could not be carried out yet. They take turns
// by their names, so that none who says something else all the time keeps the others waiting. No
// more than the bus itself holds. No I/O.

#include "pubsub/discovery/announcement.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace netio::pubsub::inline v0_2 {

class WaitingNews {
  public:
    using News = std::pair<std::string, std::optional<Announcement>>; // nothing: it is gone

    void put(const std::string& name, std::optional<Announcement> announcement) {
        last_words_.insert_or_assign(name, std::move(announcement));
    }
    bool empty() const noexcept { return last_words_.empty(); }
    // There is one.
    News take() {
        auto next = last_words_.upper_bound(told_);
        if (next == last_words_.end()) next = last_words_.begin();
        auto node = last_words_.extract(next);
        told_ = node.key();
        return {std::move(node.key()), std::move(node.mapped())};
    }

  private:
    std::map<std::string, std::optional<Announcement>> last_words_;
    std::string told_; // the last that was taken
};

} // namespace netio::pubsub::inline v0_2
