// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a subscriber has got at a moment, for whoever shows it (Subscriptions::snapshot). Plain
// values: they may be taken to another thread. Counts never fall.

#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

// Of one publisher over all its connections, also when it is gone.
struct SourceFigures {
    std::string name; // on the bus, or the address; empty: those that were forgotten, together
    bool connected = false;
    bool paused = false;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t missed = 0; // by gaps, between connections, and by totals
    std::uint64_t connections = 0;
    std::uint64_t pauses = 0;
};

struct ArrivedFigures {
    Fid fid{};
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t missed = 0;
};

struct SubscriptionsSnapshot {
    std::vector<SourceFigures> sources;
    std::vector<ArrivedFigures> fids; // as many as were wanted, in ascending order
    // Of all. If some are left out, one that several publishers had counts for each of them.
    std::size_t fid_count = 0;
};

} // namespace netio::pubsub::inline v0_2
