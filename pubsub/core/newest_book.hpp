// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of the subscribers that want the newest of some fids: which fids those are and since when, and
// what is kept of them. No I/O.
//
// Its caller stamps what enters a subscriber's queue with requests(), since what comes back from
// there may be kept only if the fid has been wanted in this way all the time: else it belongs to a
// former subscription, or something has been told behind it.

#include "pubsub/core/fan_out.hpp"
#include "pubsub/core/fid_range_map.hpp"
#include "pubsub/core/newest_store.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace netio::pubsub::inline v0_2 {

class NewestBook {
  public:
    // `limit_bytes`: of what is kept for each subscriber. `ranges_limit`: that one may want.
    NewestBook(std::size_t limit_bytes, std::size_t ranges_limit) noexcept
        : limit_{limit_bytes}, pieces_limit_{ranges_limit + std::max(ranges_limit, least_pieces)} {}

    // It has this policy for these fids, a set as in fid_ranges.hpp, from now on, or none, if it
    // does not want them any more. What is to be told as missed before anything else.
    NewestStore::Forgotten note(SubscriberId subscriber, std::span<const FidRange> set,
                                std::optional<SlowPolicy> policy);
    void remove(SubscriberId subscriber) { entries_.erase(subscriber); }

    // How often what it wants has changed.
    std::uint32_t requests(SubscriberId subscriber) const noexcept;
    // Where messages of this fid are kept that entered after so many requests; nullptr: nowhere.
    NewestStore* store_of(SubscriberId subscriber, Fid fid, std::uint32_t requests);
    // nullptr: it does not want the newest of anything.
    NewestStore* store_of(SubscriberId subscriber);
    bool keeps(SubscriberId subscriber) const noexcept;

  private:
    struct Entry {
        FidRangeMap<std::uint32_t> since; // the number of the request
        std::uint32_t requests = 0;
        NewestStore store;
    };

    static constexpr std::size_t least_pieces = 16;
    static void renew(Entry& entry);

    std::size_t limit_;
    std::size_t pieces_limit_;
    std::unordered_map<SubscriberId, Entry> entries_;
};

} // namespace netio::pubsub::inline v0_2
