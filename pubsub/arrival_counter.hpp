// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subscriber's account of what has arrived, per fid, held against the publisher's totals at the
// orderly end. No I/O.

#include "pubsub/fid_map.hpp"
#include "pubsub/frames.hpp"

#include <cstdint>
#include <span>

namespace pubsub {

// Of one fid since its subscription was accepted.
struct Arrivals {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t missed = 0;   // told by the publisher: this subscriber was too slow for them
    std::uint64_t expected = 0; // the publisher's total; known at the orderly end
};

class ArrivalCounter {
  public:
    void add(Fid fid, std::size_t bytes) {
        Arrivals& arrivals = fids_[fid];
        ++arrivals.messages;
        arrivals.bytes += bytes;
        ++messages_;
        bytes_ += bytes;
    }
    void add_missed(Fid fid, std::uint64_t count) { fids_[fid].missed += count; }
    void add_expected(std::span<const FidCount> totals) {
        for (const FidCount& total : totals)
            fids_[total.fid].expected = total.count;
        complete_ = true;
    }
    // The subscription of a range has ended, or a new connection has begun: its account is closed
    // and will not be held against totals. messages() and bytes() go on.
    void forget(const FidRange& range) {
        std::vector<Fid> gone;
        fids_.for_each([&](Fid fid, const Arrivals&) {
            if (contains(range, fid)) gone.push_back(fid);
        });
        for (const Fid fid : gone)
            fids_.erase(fid);
    }
    void forget_all() {
        fids_.clear();
        complete_ = false;
    }

    std::uint64_t messages() const noexcept { return messages_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    const FidMap<Arrivals>& fids() const noexcept { return fids_; }

    // Whether the publisher has told its totals.
    bool complete() const noexcept { return complete_; }
    // Messages that were published to this subscriber and did not arrive. Before the totals are
    // known: those that the publisher has said were missed.
    std::uint64_t lost() const {
        std::uint64_t lost = 0;
        fids_.for_each([&](Fid, const Arrivals& arrivals) {
            if (!complete_) {
                lost += arrivals.missed;
            } else if (arrivals.expected > arrivals.messages) {
                lost += arrivals.expected - arrivals.messages;
            }
        });
        return lost;
    }

  private:
    FidMap<Arrivals> fids_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
    bool complete_ = false;
};

} // namespace pubsub
