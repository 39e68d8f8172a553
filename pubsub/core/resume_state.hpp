// SPDX-License-Identifier: Apache-2.0
#pragma once

// The positions of a subscriber in the stream of each fid. They give the messages that it lost
// between two connections to the same publish socket. Another publish socket, for instance of a
// restarted publisher, counts from the beginning. The losses at the end of the former stream are
// then not known, unless the publisher had sent its totals. No I/O.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/publisher_change.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class ResumeState {
  public:
    void begin_connection() noexcept {
        ++connection_;
        stage_ = Stage::open;
    }
    // The instance of the publish socket of this connection. Returns a value if it has changed.
    std::optional<PublisherChange> meet(std::uint64_t instance);
    // The number of messages of a fid that the publisher had published when it accepted the
    // subscription. Returns how many of them were lost: 0 if the fid was not subscribed to when the
    // last connection ended.
    std::uint64_t take(const FidCount& position);
    // The subscription of a range was accepted: from here on every message arrives or is lost.
    void begin(const FidRange& range);
    // The range was unsubscribed.
    void forget(const FidRange& range);
    // The same, except fids that this connection has begun: they end with the publisher's answer.
    void forget_tails(const FidRange& range);
    // The connection has ended, after its last message. Does nothing if none has begun. `in_order`:
    // no wanted message was in flight.
    void end_connection(const ArrivalCounter& arrivals, bool in_order);
    // Whether messages may have been published that neither arrived nor were reported lost. This
    // ends with the positions after the lost connection; a connection without positions does not
    // end it, because the subscription may be refused there.
    bool has_open_tail() const;

    // The fids whose history was asked for, and that the user has not unsubscribed since: from the
    // same publish socket it would bring messages again.
    using Fids = FidRangeMap<std::monostate>;
    const Fids& supplied() const noexcept { return supplied_; }
    void note_supplied(const FidRange& range) { supplied_.assign(range, {}); }
    void forget_supplied(const FidRange& range) { supplied_.erase(range); }

    bool knows(Fid fid) const noexcept { return positions_.find(fid) != nullptr; }
    std::size_t fids() const noexcept { return positions_.size(); } // with a position
    std::uint64_t instance() const noexcept { return instance_; }   // 0: not known

  private:
    // Whether a subscription of an earlier connection was not accepted again in this or the last
    // one.
    bool is_behind() const;

    std::uint64_t instance_ = 0;
    std::uint64_t connection_ = 0; // the number of the connection
    enum class Stage : std::uint8_t {
        closed,
        open,
        met, // the instance is known
    } stage_ = Stage::closed;
    bool ended_ = false;    // the totals of all subscribed fids are known
    bool in_order_ = false; // the last connection ended in order
    // Subscribed fids, each with the number of the connection since which it is subscribed without
    // interruption.
    FidRangeMap<std::uint64_t> covered_;
    FidMap<std::uint64_t> positions_; // without the arrivals of this connection
    Fids supplied_;
};

} // namespace netio::pubsub::inline v0_3
