// SPDX-License-Identifier: Apache-2.0
#pragma once

// A test publisher's log of its subscribers and their number: connections, subscriptions, and
// reasons of disconnects. Subscribers decide how often these occur, so the subscriptions of one
// turn of the loop are combined into one line per subscriber, and the rate of lines is limited
// (apps/common/logging.hpp). Belongs to the loop's thread.

#include "apps/common/fid_text.hpp"
#include "apps/common/logging.hpp"
#include "netio/base/status.hpp"
#include "pubsub/core/fid_layout.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <cstddef>
#include <set>
#include <string>

namespace apps {

class SubscriberLog {
  public:
    explicit SubscriberLog(netio::EventLoop& loop);
    SubscriberLog(netio::EventLoop& loop, LimitedLog::Write inform, LimitedLog::Write warn);

    // Shows fids by the layout's fields.
    void decode_by(const netio::pubsub::FidLayout* layout) noexcept { ranges_.decode_by(layout); }
    void subscribed(const netio::pubsub::SubscriberPeer& peer,
                    const netio::pubsub::FidRange& range);
    void closed(const netio::pubsub::SubscriberPeer& peer, const netio::Closed& closed);
    // Connected subscribers with at least one subscription.
    std::size_t subscriber_count() const noexcept { return subscribed_.size(); }
    // Subscribers that were lost or disconnected.
    std::uint64_t disconnected() const noexcept { return disconnected_; }
    // From now on a subscriber that closes must have received everything.
    void begin_end() noexcept { ending_ = true; }
    // Subscribers at the beginning of the end that are not known to have received everything: they
    // did not close in order, or are still connected.
    std::uint64_t unconfirmed() const noexcept { return unconfirmed_ + subscribed_.size(); }

  private:
    void tell();

    LimitedLog log_;
    LimitedLog warnings_;
    netio::pubsub::SubscriberPeer peer_;
    RangeLine ranges_; // of peer_, not logged yet
    netio::Timer timer_;
    std::set<netio::pubsub::SubscriberId> subscribed_;
    std::uint64_t disconnected_ = 0;
    std::uint64_t unconfirmed_ = 0;
    bool ending_ = false;
};

} // namespace apps
