// SPDX-License-Identifier: Apache-2.0
#pragma once

// RingSet: the rings of one receiver by their numbers (Copy::ring), which count from 0 in the order
// of announcement: one, or two while the stream changes from one to the next
// (docs/stream-protocol.md, R15).
//
// Outlives the session whose peer writes into them.

#include "stream/core/fifo.hpp"
#include "stream/core/wire.hpp"
#include "stream/socket/lending.hpp"

#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace netio::stream::inline v0_2 {

class RingSet {
  public:
    // The next ring, and what the peer is to be told of it. Throws FabricError if there is no
    // memory, or no more of it may be locked; then nothing is added.
    RemoteRing add(std::uint64_t bytes, const Lending& lending, MemoryDomain& domain);
    // Frees the oldest, whose number this must be (checked).
    void drop(std::uint32_t number);
    // The memory of a ring that is there (checked).
    std::byte* at(std::uint32_t number) const;

    std::size_t size() const noexcept { return rings_.size(); }

  private:
    Fifo<std::unique_ptr<RegisteredBuffer>> rings_;
    std::uint32_t first_ = 0; // number of the front
};

} // namespace netio::stream::inline v0_2
