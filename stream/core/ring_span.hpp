// SPDX-License-Identifier: Apache-2.0
#pragma once

// RingSpan: where the bytes of indirect transfers lie in one ring (docs/stream-protocol.md, R4).
//
// Both sides count indirect bytes from the beginning of the stream, through all rings that a
// direction has had (R15). A ring holds those from `begin` on, the first of them at its start. A
// plain value.

#include <algorithm>
#include <cstdint>

namespace netio::stream::inline v0_2 {

struct RingSpan {
    std::uint64_t begin = 0; // indirect bytes of the rings before this one
    std::uint64_t bytes = 0;

    // Of the byte at this position, which is in this ring.
    std::uint64_t offset(std::uint64_t position) const { return (position - begin) % bytes; }
    std::uint64_t bytes_to_end(std::uint64_t position) const { return bytes - offset(position); }
    // Between what was copied out of all rings so far, and what was written into this one.
    std::uint64_t used_bytes(std::uint64_t copied, std::uint64_t written) const {
        return written - std::max(copied, begin);
    }
    std::uint64_t free_bytes(std::uint64_t copied, std::uint64_t written) const {
        return bytes - used_bytes(copied, written);
    }
};

} // namespace netio::stream::inline v0_2
