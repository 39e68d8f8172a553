// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conflation, the policy `newest`: for a slow subscriber, only the last message of each fid is
// stored. No I/O.

#include "netio/coalescing/page.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/time_stamp.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// The last message of each fid, and the number of earlier messages that were dropped and not yet
// reported.
//
// The store is limited in bytes. If a message does not fit, those of the fids are dropped that had
// no message for the longest time. A message that is larger than the limit is not stored. The count
// of a fid's dropped messages precedes its stored message.
class ConflationStore {
  public:
    // The cost of a message in addition to its bytes.
    static constexpr std::size_t overhead_bytes = 128;

    explicit ConflationStore(std::size_t limit_bytes) noexcept : limit_{limit_bytes} {}

    struct Message {
        Fid fid{};
        std::uint8_t status = 0;
        std::vector<std::byte> bytes; // with the time stamp, if there are any
        StampFormat stamps;           // of the caller
    };
    // Stores the newest message of a fid. Returns the fid of each message that was dropped for it,
    // possibly its own; valid until the next call.
    std::span<const Fid> put(Fid fid, MessageParts parts, std::uint8_t status,
                             StampFormat stamps = {});
    // The result for a message that was published before every message with which put() was called
    // for the fid and that was not taken out yet.
    enum class Older : std::uint8_t {
        kept,
        dropped, // no space. It is counted, so that an earlier one is not taken for the last
        not_last // of its fid; it is not counted here
    };
    Older put_older(Fid fid, MessageParts parts, std::uint8_t status);

    // Removes and returns the counts of dropped messages, in the order of the fids. Call it before
    // front() and pop_front(). The messages are in order of age: first that of the fid that had
    // none for the longest time.
    std::vector<FidCount> take_dropped();
    bool has_messages() const noexcept { return !kept_.empty(); }
    const Message& front() const noexcept { return kept_.front(); }
    void pop_front();

    struct Forgotten {
        std::vector<FidCount> dropped;
        std::vector<Fid> dropped_now;
    };
    // Removes these fids, a set as in fid_ranges.hpp. Returns the counts of dropped messages,
    // including those that were stored until now, in the order of the fids; `dropped_now`: the fids
    // of the latter.
    Forgotten forget(std::span<const FidRange> set);

    bool empty() const noexcept { return kept_.empty() && dropped_.empty(); }
    std::size_t messages() const noexcept { return kept_.size(); }
    // The used part of the limit.
    std::size_t bytes() const noexcept { return bytes_; }

  private:
    using Kept = std::list<Message>; // first the fid that had none for the longest time

    void drop(Kept::iterator message);
    void note_dropped(Fid fid);

    std::size_t limit_;
    std::size_t bytes_ = 0;
    Kept kept_;
    FidMap<Kept::iterator> places_;
    FidMap<std::uint64_t> dropped_;
    std::vector<Fid> dropped_now_; // by the last put()
};

// The stores of all subscribers that have the policy `newest` for some fids, and since which
// request they have it.
//
// The caller stores the value of requests() with each message that it queues for a subscriber. A
// message that is taken back from the queue may be conflated only if its fid had the policy
// `newest` without interruption since that value, which store_of() checks. Otherwise the message
// belongs to an earlier subscription, or the subscriber has received a reply that follows it.
class ConflationTable {
  public:
    // `limit_bytes`: of the store of each subscriber. `ranges_limit`: of a subscriber's
    // subscriptions.
    ConflationTable(std::size_t limit_bytes, std::size_t ranges_limit) noexcept
        : limit_{limit_bytes}, pieces_limit_{ranges_limit + std::max(ranges_limit, least_pieces)} {}

    // Notes that the subscriber has this policy for these fids, a set as in fid_ranges.hpp, from
    // now on; nullopt: it has unsubscribed. Returns what must be reported to it first.
    ConflationStore::Forgotten note(SubscriberId subscriber, std::span<const FidRange> set,
                                    std::optional<SlowPolicy> policy);
    void remove(SubscriberId subscriber) { entries_.erase(subscriber); }

    // The number of changes of the subscriber's subscriptions.
    std::uint32_t requests(SubscriberId subscriber) const noexcept;
    // The store for messages of this fid that were queued after `requests` changes; nullptr: they
    // may not be conflated.
    ConflationStore* store_of(SubscriberId subscriber, Fid fid, std::uint32_t requests);
    // nullptr: the subscriber has the policy for no fid.
    ConflationStore* store_of(SubscriberId subscriber);
    // Whether anything is stored for the subscriber.
    bool keeps(SubscriberId subscriber) const noexcept;

  private:
    struct Entry {
        FidRangeMap<std::uint32_t> since; // the number of the request
        std::uint32_t requests = 0;
        ConflationStore store;
    };

    static constexpr std::size_t least_pieces = 16;
    static void renew(Entry& entry);

    std::size_t limit_;
    std::size_t pieces_limit_;
    std::unordered_map<SubscriberId, Entry> entries_;
};

} // namespace netio::pubsub::inline v0_3
