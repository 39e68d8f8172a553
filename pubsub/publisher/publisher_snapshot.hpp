// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of a publisher at one moment, for monitoring (Publisher::snapshot). Plain values that
// may be passed to another thread.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// The unit of waiting, most_waiting and posted is bytes of pages (buffered), or publications whose
// memory is in flight (unbuffered).
struct SubscriberSnapshot {
    SubscriberId id{};
    std::string address;
    Duration connected_for{};
    std::size_t waiting = 0;       // in its queue
    std::size_t most_waiting = 0;  // since the last snapshot
    std::size_t posted = 0;        // passed to the fabric and not completed
    std::size_t queued = 0;        // entries of its queue: pages or messages, gaps, answers, lists
    std::size_t queued_counts = 0; // counts of fids in queued gaps and positions
    std::size_t credits = 0;       // free receive buffers of the subscriber
    std::size_t least_credits = 0; // since the last snapshot
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t dropped = 0; // messages that were dropped for it
    Duration idle{};           // without progress although something was queued
    bool reclaimed = false;    // its queue was dropped; nothing is queued until it makes progress
    bool waited_for = false;   // publishing waits for it
    struct Latency {
        Duration median{};
        Duration p99{};
        Duration longest{};
    };
    Latency latency; // of its frames: from being queued until they are sent, in turns of the loop
};

struct PublishedFidSnapshot {
    Fid fid{};
    std::uint64_t messages = 0; // published, also without subscribers
    std::uint64_t again = 0;    // calls that returned again
    std::uint64_t dropped = 0;  // summed over all subscribers
};

// The messages that are kept for late subscribers.
struct HistorySnapshot {
    std::size_t limit = 0; // history_limit_bytes; 0: none are kept
    std::size_t bytes = 0; // in use
    std::size_t messages = 0;
    std::size_t late = 0; // subscriptions to which kept messages are being sent
};

// The limits of the number of entries in a snapshot.
struct SnapshotLimits {
    std::size_t fids = 1000;
    std::size_t subscribers = 1000;
};

struct PublisherSnapshot {
    std::size_t pool = 0; // the memory limit; like free, in the unit of SubscriberSnapshot
    std::size_t free = 0;
    std::size_t least_free = 0; // since the last snapshot
    HistorySnapshot history{};
    // The total time for which publishing was blocked: from `again` or `partial` until on_writable.
    // Includes a wait that has not ended yet.
    Duration blocked_time{};
    LatencyHistogram latency; // of the frames to all subscribers, also to those that are gone
    std::vector<SubscriberSnapshot> subscribers; // up to the limit
    std::size_t subscriber_count = 0;            // of all
    std::vector<PublishedFidSnapshot> fids;      // up to the limit, in ascending order
    std::size_t fid_count = 0;                   // of all
};

} // namespace netio::pubsub::inline v0_3
