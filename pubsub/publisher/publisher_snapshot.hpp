// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a publisher is at a moment, for whoever shows it (Publisher::snapshot). Plain values: they
// may be taken to another thread.

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Amounts are bytes of pages (buffered), or publications whose memory is lent (unbuffered).
struct SubscriberFigures {
    SubscriberId id{};
    std::string address;
    Duration connected_for{};
    std::size_t waiting = 0;       // in its queue
    std::size_t most_waiting = 0;  // since the last snapshot
    std::size_t posted = 0;        // in the fabric's hands
    std::size_t queued = 0;        // entries of its queue: pages or messages, gaps, answers, lists
    std::size_t queued_counts = 0; // counts of fids in the gaps and positions that wait
    std::size_t credits = 0;       // receives that it has for us
    std::size_t least_credits = 0; // since the last snapshot
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t dropped = 0; // messages that it missed
    Duration idle{};           // it has taken nothing for so long, and there was something
    bool gave_way = false;     // nothing is kept for it until it takes something
    bool waited_for = false;   // publishing waits for it
    struct Latency {
        Duration median{};
        Duration p99{};
        Duration longest{};
    };
    Latency
        latency; // of its frames: from the queue's end until they are sent, in turns of the loop
};

struct FidFigures {
    Fid fid{};
    std::uint64_t messages = 0; // published, also those that nobody wanted
    std::uint64_t again = 0;    // refused, for the time being
    std::uint64_t dropped = 0;  // that subscribers missed, all together
};

// How much of it is wanted.
struct SnapshotLimits {
    std::size_t fids = 1000;
    std::size_t subscribers = 1000;
};

struct PublisherSnapshot {
    std::size_t pool = 0; // all that may be in use
    std::size_t free = 0;
    std::size_t least_free = 0; // since the last snapshot
    // From `again` or `partial` until on_writable: all such times together, with the one going on.
    Duration held_up{};
    LatencyHistogram latency; // of the frames to all subscribers, also former ones
    std::vector<SubscriberFigures> subscribers; // as many as were wanted
    std::size_t subscriber_count = 0;           // of all
    std::vector<FidFigures> fids;               // as many as were wanted, in ascending order
    std::size_t fid_count = 0;                  // of all
};

} // namespace netio::pubsub::inline v0_2
