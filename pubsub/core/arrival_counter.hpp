// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts what has arrived at a subscriber, per fid, and compares it with the totals that the
// publisher sends when it closes in order. No I/O.

#include "pubsub/core/fid_map.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Which kinds of frames have brought messages. Both kinds of publishers send fragments.
struct FramesSeen {
    bool pages = false;    // from a buffered publisher
    bool messages = false; // from an unbuffered publisher
    bool gathered = false; // from an unbuffered publisher: pages of small queued messages
    bool fragments = false;
};
inline void merge(FramesSeen& all, const FramesSeen& seen) noexcept {
    all.pages = all.pages || seen.pages;
    all.messages = all.messages || seen.messages;
    all.gathered = all.gathered || seen.gathered;
    all.fragments = all.fragments || seen.fragments;
}

// The counters of one fid since its subscription was accepted.
struct Arrivals {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

class ArrivalCounter {
  public:
    // The counters of a fid, valid until the next call.
    Arrivals& of(Fid fid) { return fids_[fid]; }
    Arrivals* find(Fid fid) noexcept { // nullptr: none
        Arrivals* const counters = fids_.find_or_vacant(fid);
        return counters == nullptr || counters->messages > 0 ? counters : fids_.find(fid);
    }
    void add(Arrivals& counters, std::size_t bytes) noexcept {
        ++counters.messages;
        counters.bytes += bytes;
        ++messages_;
        bytes_ += bytes;
    }
    void add(Fid fid, std::size_t bytes) { add(of(fid), bytes); }
    // Notes that the publisher has reported `count` messages that it dropped for this subscriber.
    void add_dropped(Fid fid, std::uint64_t count) {
        of(fid);
        Claim& claim = claims_[fid];
        claim.dropped = added(claim.dropped, count);
        dropped_ = added(dropped_, count);
    }
    // Takes the totals of the publisher at the orderly end: one call per fid, then
    // complete_totals().
    void expect(const FidCount& total) {
        of(total.fid);
        claims_[total.fid].expected = total.count;
    }
    void complete_totals() noexcept { complete_ = true; }
    // Removes the counters of a range, because its subscription has ended or a new connection has
    // begun; they are not compared with totals. messages(), bytes() and dropped() keep their
    // values.
    void forget(const FidRange& range) {
        fids_.erase(range);
        claims_.erase(range);
    }
    void forget_all() {
        fids_.clear();
        claims_.clear();
        complete_ = false;
    }

    std::uint64_t messages() const noexcept { return messages_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    const FidMap<Arrivals>& fids() const noexcept { return fids_; }

    // Whether the publisher has sent its totals.
    bool complete() const noexcept { return complete_; }
    // Messages that the publisher reported as dropped so far.
    std::uint64_t dropped() const noexcept { return dropped_; }
    std::uint64_t dropped(Fid fid) const {
        const Claim* const claim = claims_.find(fid);
        return claim != nullptr ? claim->dropped : 0;
    }
    // The comparison with the totals; `nullopt` until they are known, and so after a lost
    // connection or the subscriber's own close().
    struct Difference {
        std::uint64_t lost = 0;    // published to this subscriber and not arrived
        std::uint64_t surplus = 0; // arrived and not published to it
        friend bool operator==(const Difference&, const Difference&) = default;
    };
    // Sums over the fids; lost and surplus messages do not cancel each other out.
    std::optional<Difference> difference() const {
        if (!complete_) return std::nullopt;
        Difference sum;
        fids_.for_each([&](Fid fid, const Arrivals& arrived) {
            const Difference difference = difference_of(fid, arrived);
            sum.lost = added(sum.lost, difference.lost);
            sum.surplus = added(sum.surplus, difference.surplus);
        });
        return sum;
    }
    std::optional<Difference> difference(Fid fid) const {
        if (!complete_) return std::nullopt;
        const Arrivals* const arrived = fids_.find(fid);
        return arrived != nullptr ? difference_of(fid, *arrived) : Difference{};
    }

  private:
    // What the publisher reported of a fid. Separate from Arrivals, which every message needs, so
    // that more of those fit into a cache.
    struct Claim {
        std::uint64_t dropped = 0;
        std::uint64_t expected = 0;
    };

    // Saturates, because a peer may report any number.
    static constexpr std::uint64_t added(std::uint64_t a, std::uint64_t b) noexcept {
        return a + b < a ? UINT64_MAX : a + b;
    }
    // A message that arrived twice does not compensate a dropped one.
    Difference difference_of(Fid fid, const Arrivals& arrived) const {
        const Claim* const found = claims_.find(fid);
        const Claim claim = found != nullptr ? *found : Claim{};
        const std::uint64_t absent =
            claim.expected > arrived.messages ? claim.expected - arrived.messages : 0;
        const std::uint64_t lost = std::max(absent, claim.dropped);
        const std::uint64_t seen = added(arrived.messages, lost);
        return {.lost = lost, .surplus = seen > claim.expected ? seen - claim.expected : 0};
    }

    FidMap<Arrivals> fids_; // includes each fid with a claim
    FidMap<Claim> claims_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t dropped_ = 0;
    bool complete_ = false;
};

} // namespace netio::pubsub::inline v0_3
