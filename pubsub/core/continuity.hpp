// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subscriber's account across connections: how far it is in the stream of each fid, and so what
// it missed between two connections to the same publish socket. Another socket, as that of a
// publisher that was started anew, counts from the beginning; what the former one published at its
// end is then not known, unless it had told its totals. No I/O.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/publisher_change.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class Continuity {
  public:
    void begin_connection() noexcept {
        ++connection_;
        stage_ = Stage::open;
    }
    // The publisher of this connection says who it is. Something: it is another one than before.
    std::optional<PublisherChange> meet(std::uint64_t instance);
    // What it had published of a fid when it accepted the subscription. How many of those were
    // missed: none, if the fid was not subscribed to when the last connection ended.
    std::uint64_t take(const FidCount& position);
    // From here on every message of the range arrives, or is missed.
    void begin(const FidRange& range);
    // It is not wanted any more.
    void forget(const FidRange& range);
    // The same, but for what this connection has begun: that ends with the publisher's answer.
    void forget_tails(const FidRange& range);
    // The connection has ended, behind what had arrived. Nothing, if none has begun. `in_order`:
    // nothing that was wanted was on its way.
    void end_connection(const ArrivalCounter& arrivals, bool in_order);
    // Something may have been published that neither arrived nor was told missing. That ends with
    // the positions behind the connection that was lost, and not with a connection that has none:
    // the subscription may be refused there.
    bool has_open_tail() const;

    bool knows(Fid fid) const noexcept { return positions_.find(fid) != nullptr; }
    std::size_t fids() const noexcept { return positions_.size(); } // that it knows
    std::uint64_t instance() const noexcept { return instance_; }   // 0: none is known

  private:
    // Something is covered that this connection, or the last one, has not begun.
    bool is_behind() const;

    std::uint64_t instance_ = 0;
    std::uint64_t connection_ = 0; // the number of this one
    enum class Stage : std::uint8_t {
        closed,
        open,
        met, // who is there has said who it is
    } stage_ = Stage::closed;
    bool ended_ = false;    // it has told the totals of all that is covered
    bool in_order_ = false; // the end of the last one
    // By the account, and since which connection without a break.
    FidRangeMap<std::uint64_t> covered_;
    FidMap<std::uint64_t> positions_; // without the arrivals of this connection; else 0
};

} // namespace netio::pubsub::inline v0_2
