// SPDX-License-Identifier: Apache-2.0
#pragma once

// The statistics of all publishers of a Subscriptions: of the current ones, and of those that are
// gone from the bus. A publisher that returns under its name continues its statistics. Bounded; of
// forgotten publishers the sums remain.

#include "pubsub/client/publisher_connection.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class PublisherHistory {
  public:
    struct Limits {
        std::size_t publishers = 0;     // that are gone
        std::size_t fids = 0;           // of all that are gone
        std::size_t forgotten_fids = 0; // of all that were summed up
    };
    // `current` must outlive it.
    PublisherHistory(const PublisherConnections& current, const Limits& limits) noexcept
        : current_{current}, limits_{limits} {}

    // Stores the connection of a publisher that is gone. May forget the oldest publishers, and this
    // one.
    void keep(std::unique_ptr<PublisherConnection> connection);
    // Removes and returns the connection of the publisher of that name, because it is back;
    // nullptr: none is stored.
    std::unique_ptr<PublisherConnection> take(const std::string& name);
    // Call it when the user has unsubscribed from these fids.
    void forget(const FidRange& range);

    std::vector<Subscriptions::PublisherStats> publisher_stats() const;
    Subscriptions::Sums sums() const;
    SubscriptionsSnapshot snapshot(std::size_t fids);

  private:
    void forget_oldest();

    const PublisherConnections& current_;
    Limits limits_;
    std::vector<std::unique_ptr<PublisherConnection>> departed_; // in the order of keep()
    std::size_t fids_ = 0;                                       // of those
    Subscriptions::PublisherStats forgotten_;                    // together
    RemotePublisherSnapshot forgotten_sums_;
    ShownFids<ReceivedFidSnapshot> shown_;
};

} // namespace netio::pubsub::inline v0_3
