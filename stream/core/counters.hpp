// SPDX-License-Identifier: Apache-2.0
#pragma once

// The counters of the two directions of a stream. A direct transfer writes into the memory of a
// posted receive, an indirect one into the ring. (Letters with numbers are the rules and policies
// of docs/stream-protocol.md.)

#include "netio/base/require_cxx20.hpp"

#include <cstdint>

namespace netio::stream::inline v0_3 {

struct SenderCounters {
    std::uint64_t direct_bytes = 0;
    std::uint64_t indirect_bytes = 0;
    std::uint64_t direct_transfers = 0;
    std::uint64_t indirect_transfers = 0;
    std::uint64_t phase_switches = 0;
    std::uint64_t adverts_received = 0;
    std::uint64_t adverts_rejected_by_phase = 0;
    std::uint64_t adverts_rejected_by_sequence = 0;
    // Waits between two transfers; one wait counts once, however often it was checked.
    std::uint64_t waits_for_ring = 0;   // for ring space
    std::uint64_t waits_for_advert = 0; // for an advert (P1, direct-only)
    std::uint64_t waits_for_drain = 0;  // for the peer to empty the ring (P8)
    std::uint64_t ring_bytes = 0;       // of the peer's ring, at the moment
    std::uint64_t ring_growths = 0;     // R15
};

struct ReceiverCounters {
    std::uint64_t direct_bytes = 0;
    std::uint64_t indirect_bytes = 0;
    std::uint64_t direct_transfers = 0;
    std::uint64_t indirect_transfers = 0;
    std::uint64_t phase_switches = 0;
    std::uint64_t adverts = 0;
    std::uint64_t adverts_revoked = 0; // R7
    std::uint64_t acks = 0;
    std::uint64_t ring_bytes = 0;    // of the ring, at the moment
    std::uint64_t ring_growths = 0;  // R15
    std::uint64_t ring_refusals = 0; // P11: growth was not possible, because there was no memory
};

} // namespace netio::stream::inline v0_3
