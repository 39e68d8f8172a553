// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a test publisher says of its subscribers, and how many there are: who comes, for what, why
// they go, and who could not be accepted. They decide
// how often, so what each asks for in a turn of the loop is one line, and there are so many lines
// an interval (apps/common/limited_log.hpp). Belongs to the loop's thread.

#include "apps/common/accept_failure_log.hpp"
#include "apps/common/limited_log.hpp"
#include "apps/common/range_line.hpp"
#include "apps/metrics/publisher_metrics.hpp"
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

    // Shows fids by its fields from now on.
    void decode_by(const netio::pubsub::FidLayout* layout) noexcept { ranges_.decode_by(layout); }
    void subscribed(const netio::pubsub::SubscriberPeer& peer,
                    const netio::pubsub::FidRange& range);
    void closed(const netio::pubsub::SubscriberPeer& peer, const netio::Closed& closed);
    void accept_failed(const std::string& peer_address, const netio::FabricError& why) {
        ++lost_.accept_failed;
        accept_failed_.note(peer_address, why);
    }
    void rejected(const std::string& peer_address, const std::string& why) {
        ++lost_.rejected;
        accept_failed_.rejected(peer_address, why);
    }

    // That have subscribed to something and are here.
    std::size_t subscriber_count() const noexcept { return subscribed_.size(); }
    const LostPeers& lost() const noexcept { return lost_; }

  private:
    void tell();

    LimitedLog log_;
    LimitedLog warnings_;
    netio::pubsub::SubscriberPeer peer_;
    RangeLine ranges_; // of peer_, not told yet
    netio::Timer timer_;
    std::set<netio::pubsub::SubscriberId> subscribed_;
    LostPeers lost_;
    AcceptFailureLog accept_failed_;
};

} // namespace apps
