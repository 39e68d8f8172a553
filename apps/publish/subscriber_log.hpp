// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a test publisher says of its subscribers, and how many there are: who comes, for what, and
// why they go. They decide how often, so what each asks for in a turn of the loop is one line, and
// there are so many lines an interval (apps/common/logging.hpp). Belongs to the loop's thread.

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

    // Shows fids by its fields from now on.
    void decode_by(const netio::pubsub::FidLayout* layout) noexcept { ranges_.decode_by(layout); }
    void subscribed(const netio::pubsub::SubscriberPeer& peer,
                    const netio::pubsub::FidRange& range);
    void closed(const netio::pubsub::SubscriberPeer& peer, const netio::Closed& closed);
    // That have subscribed to something and are here.
    std::size_t subscriber_count() const noexcept { return subscribed_.size(); }
    // That were lost or let go.
    std::uint64_t disconnected() const noexcept { return disconnected_; }
    // From now on whoever goes is to have everything.
    void begin_end() noexcept { ending_ = true; }
    // That had subscribed when the end began and are not known to have everything: they went in
    // another way than in order, or are still here.
    std::uint64_t unconfirmed() const noexcept { return unconfirmed_ + subscribed_.size(); }

  private:
    void tell();

    LimitedLog log_;
    LimitedLog warnings_;
    netio::pubsub::SubscriberPeer peer_;
    RangeLine ranges_; // of peer_, not told yet
    netio::Timer timer_;
    std::set<netio::pubsub::SubscriberId> subscribed_;
    std::uint64_t disconnected_ = 0;
    std::uint64_t unconfirmed_ = 0;
    bool ending_ = false;
};

} // namespace apps
