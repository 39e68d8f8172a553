// SPDX-License-Identifier: Apache-2.0
#pragma once

// The statistics of a subscriber at one moment, for display (Subscriptions::snapshot). Plain
// values, which may be passed to another thread. Counters do not decrease.

#include "netio/base/kept_bytes.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// One publisher over all its connections, even after it is gone.
struct RemotePublisherSnapshot {
    std::string name; // on the bus, or the address; empty: all forgotten publishers together
    bool connected = false;
    bool paused = false;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0; // dropped, between connections, or missing in the totals
    std::uint64_t connections = 0;
    std::uint64_t pauses = 0;
    KeepStats kept{}; // of the present connection
};

struct ReceivedFidSnapshot {
    Fid fid{};
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
};

struct SubscriptionsSnapshot {
    std::vector<RemotePublisherSnapshot> publishers;
    std::vector<ReceivedFidSnapshot> fids; // up to the requested number, in ascending order
    // The number of all fids. If not all are listed, a fid of several publishers counts for each of
    // them.
    std::size_t fid_count = 0;
};

} // namespace netio::pubsub::inline v0_3
