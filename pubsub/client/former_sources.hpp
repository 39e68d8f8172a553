// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publishers that are gone from the bus: what they had brought counts, and if one of that name
// comes back it goes on in its books. Bounded; of those that were forgotten the sums remain.

#include "pubsub/client/source_connection.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class FormerSources {
  public:
    struct Limits {
        std::size_t publishers = 0;
        std::size_t fids = 0;           // of all of them
        std::size_t forgotten_fids = 0; // of those that have been summed up
    };
    explicit FormerSources(Limits limits) noexcept : limits_{limits} {}

    // May forget those that have been here for the longest time, and this one.
    void keep(std::unique_ptr<SourceConnection> source);
    // Null: there is none of that name.
    std::unique_ptr<SourceConnection> take(const std::string& name);
    // The user does not want these any more.
    void forget(const FidRange& range);

    void add_to(std::vector<Subscriptions::Told>& all) const;
    void add_to(Subscriptions::Sums& sums) const;
    void add_to(SubscriptionsSnapshot& snapshot, ShownFids<ArrivedFigures>& shown) const;

  private:
    void forget_oldest();

    Limits limits_;
    std::vector<std::unique_ptr<SourceConnection>> kept_; // in the order in which they came
    std::size_t fids_ = 0;                                // of those
    Subscriptions::Told forgotten_;                       // together
    SourceFigures forgotten_figures_;
};

} // namespace netio::pubsub::inline v0_2
